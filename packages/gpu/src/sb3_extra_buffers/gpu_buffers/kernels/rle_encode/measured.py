"""What the first of the two passes finds out."""

from __future__ import annotations

from typing import NamedTuple

import torch


class Measured(NamedTuple):
    """How long payloads will be, and what the second pass of the same module must know besides.

    :param lengths: ``int64``, bytes of the payload of each row; those of the row itself if it is stored raw
    :param notes: for ``write``, which is given this as a whole
    """

    lengths: torch.Tensor
    notes: torch.Tensor


def payload_lengths(runs: torch.Tensor, nbytes: int, run_nbytes: int) -> torch.Tensor:
    """How long payloads are. Where runs do not pay, the row is stored raw.

    :param runs: of each row, ``int64``
    :param nbytes: bytes of a row
    :param run_nbytes: bytes of a run
    """
    return torch.clamp(runs * run_nbytes, max=nbytes)
