"""Which frames of which chunks a batch needs, and where they go."""

from __future__ import annotations

from typing import NamedTuple

import torch


class Needs(NamedTuple):
    """What is needed, chunk by chunk.

    :param begin: ``int32``, where the needs of each chunk begin, and where the last ones end
    :param frame: ``int32``, for each need which frame of its chunk; ascending within a chunk, the same may come again
    :param target: ``int64``, for each need the place in the output of the frame's first byte
    """

    begin: torch.Tensor
    frame: torch.Tensor
    target: torch.Tensor
