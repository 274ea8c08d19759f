"""Rows into run-length payloads, in plain torch."""

from __future__ import annotations

import torch

from sb3_extra_buffers.gpu_buffers.kernels.elements import end_nbytes
from sb3_extra_buffers.gpu_buffers.kernels.rle_encode.measured import Measured, payload_lengths


def measure(rows: torch.Tensor, *, item: int) -> Measured:
    """Find out how long the payloads of rows will be.

    :param rows: ``uint8``, one row for each payload
    :param item: bytes of an element: 1, 2, 4, 8 or 16
    """
    number, nbytes = rows.shape
    width = end_nbytes("rle_encode", nbytes // item, item)
    elements = rows.reshape(number, nbytes // item, item)
    is_last = torch.ones(elements.shape[:2], dtype=torch.bool, device=rows.device)
    is_last[:, :-1] = (elements[:, 1:] != elements[:, :-1]).any(dim=2)
    return Measured(payload_lengths(is_last.sum(1), nbytes, width + item), is_last)


def write(rows: torch.Tensor, measured: Measured, offsets: torch.Tensor, out: torch.Tensor, *, item: int) -> None:
    """Write the payloads of rows.

    :param rows: what was measured
    :param measured: what was found
    :param offsets: ``int64``, where in ``out`` each payload begins
    :param out: ``uint8``, with room for each payload
    :param item: bytes of an element
    """
    number, nbytes = rows.shape
    width, lengths = end_nbytes("rle_encode", nbytes // item, item), measured.lengths
    is_raw = lengths == nbytes
    out[_spans(offsets[is_raw], 1, nbytes)] = rows[is_raw]
    row, element = torch.nonzero(measured.notes & ~is_raw[:, None], as_tuple=True)
    runs = torch.where(is_raw, 0, lengths // (width + item))
    run = torch.arange(len(row), device=rows.device) - (torch.cumsum(runs, 0) - runs)[row]
    ends = (element + 1).view(torch.uint8).view(-1, 8)  # least byte first, on everything that torch runs on
    out[_spans(offsets[row], width, width, run)] = ends[:, :width]
    values = rows.reshape(number, nbytes // item, item)[row, element]
    out[_spans((offsets + runs * width)[row], item, item, run)] = values


def _spans(begins: torch.Tensor, step: int, nbytes: int, number: torch.Tensor | int = 0) -> torch.Tensor:
    """Indices of ``nbytes`` bytes each, ``number`` steps behind where they begin."""
    return (begins + number * step)[:, None] + torch.arange(nbytes, device=begins.device)
