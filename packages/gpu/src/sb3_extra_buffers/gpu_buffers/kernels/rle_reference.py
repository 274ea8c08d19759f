"""Run-length payloads in plain torch: the specification of ``rle_decode`` and ``rle_encode``, and the fallback.

It computes with ``uint8``, signed integers and ``float32`` only, the types that MPS and all torch operators support.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from sb3_extra_buffers.codecs.rle import end_dtype
from sb3_extra_buffers.errors import ParameterError, PayloadError

#: Supported element sizes in bytes. They divide a tile, and cover all dtypes of observations.
ITEM_SIZES = (1, 2, 4, 8, 16)
_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def end_nbytes(owner: str, count: int, item: int) -> int:
    """Bytes of a run end.

    :param owner: the caller, for the error
    :param count: elements of a cell
    :param item: bytes of an element
    """
    if item not in ITEM_SIZES:
        raise ParameterError(owner, "item", item, f"elements have {', '.join(map(str, ITEM_SIZES))} bytes")
    if count < 1:
        raise ParameterError(owner, "count", count, "a cell has one element or more")
    return int(end_dtype(count).itemsize)


def decode(
    payloads: Sequence[torch.Tensor], out: torch.Tensor, *, count: int, item: int, scale: float | None = None
) -> None:
    """Decode payload ``i`` into row ``i``.

    :param payloads: ``uint8``, one tensor per payload
    :param out: one row per payload: ``uint8`` of ``count * item`` bytes, or with a ``scale`` ``float32`` of ``count``
    :param count: elements of a cell
    :param item: bytes of an element: 1, 2, 4, 8 or 16
    :param scale: if given, rows are ``float32``: each unsigned byte times this; only for elements of one byte
    :raise PayloadError: for a damaged payload
    """
    width = end_nbytes("rle_decode", count, item)
    sizes = [len(payload) for payload in payloads]
    raw = [index for index, size in enumerate(sizes) if size == count * item]
    packed = [index for index, size in enumerate(sizes) if size != count * item]
    for index in packed:
        if sizes[index] % (width + item) or not 0 < sizes[index] < count * item:
            problem = f"its length is neither that of the cell, {count * item}, nor some runs of {width + item} less"
            raise PayloadError("rle", sizes[index], problem, index)
    if raw:
        rows = torch.stack([payloads[index] for index in raw])
        _place(rows, raw, out, scale)
    if packed:
        rows = _expand([payloads[index] for index in packed], packed, count, item, width)
        _place(rows, packed, out, scale)


def _place(rows: torch.Tensor, indices: list[int], out: torch.Tensor, scale: float | None) -> None:
    cells = rows if scale is None else rows.to(torch.float32).mul_(scale)
    if len(indices) == len(out):
        out.copy_(cells)
    else:
        out[torch.tensor(indices, device=out.device)] = cells


def _expand(payloads: list[torch.Tensor], indices: list[int], count: int, item: int, width: int) -> torch.Tensor:
    """Decode run-length payloads to cells, one row each.

    The difference between a run's value and the previous value is stored where the run begins; the cumulative sum gives
    the values. Bytes wrap around, so this is exact and needs no index table as large as the cells.
    """
    device, number = payloads[0].device, len(payloads)
    runs = [len(payload) // (width + item) for payload in payloads]
    ends = _load_ends(payloads, runs, width)
    values = torch.cat([payload[run * width :] for payload, run in zip(payloads, runs)]).view(-1, item)
    runs_of = torch.tensor(runs, device=device)
    cell_of = torch.repeat_interleave(torch.arange(number, device=device), runs_of, output_size=len(ends))
    lasts = torch.cumsum(runs_of, 0) - 1
    _check(ends, cell_of, lasts, payloads, indices, count)
    begins = (ends + cell_of * count)[:-1]
    changes = torch.zeros((number * count, item), dtype=torch.uint8, device=device)
    changes[0] = values[0]
    changes.index_copy_(0, begins, values[1:] - values[:-1])
    if device.type == "mps":  # it is not certain that sums of bytes wrap around there
        return (torch.cumsum(changes, 0, dtype=torch.int32) & 255).to(torch.uint8).view(number, count * item)
    return torch.cumsum(changes, 0, dtype=torch.uint8).view(number, count * item)


def _load_ends(payloads: list[torch.Tensor], runs: list[int], width: int) -> torch.Tensor:
    """Run ends as ``int64``. They are joined first: a slice at an odd byte offset cannot be viewed as words."""
    joined = torch.cat([payload[: run * width] for payload, run in zip(payloads, runs)])
    ends = joined.view(_WORDS[width]).to(torch.int64)
    return ends if width == 8 else ends & ((1 << 8 * width) - 1)


def _check(
    ends: torch.Tensor,
    cell_of: torch.Tensor,
    lasts: torch.Tensor,
    payloads: list[torch.Tensor],
    indices: list[int],
    count: int,
) -> None:
    before = torch.zeros_like(ends)
    before[1:] = ends[:-1]
    before[lasts[:-1] + 1] = 0
    damaged = ends <= before
    damaged[lasts] |= ends[lasts] != count
    if damaged.any():
        which = int(cell_of[damaged.nonzero()[0, 0]])
        problem = f"its run ends do not rise to the element count {count}"
        raise PayloadError("rle", len(payloads[which]), problem, indices[which])


class Measured(NamedTuple):
    """Result of ``measure``, the first pass; ``write`` of the same module takes it.

    :param lengths: ``int64``, bytes of the payload of each row; the row size if the row is stored raw
    :param notes: for ``write`` only; its content differs between the kernel and the reference
    """

    lengths: torch.Tensor
    notes: torch.Tensor


def payload_lengths(runs: torch.Tensor, nbytes: int, run_nbytes: int) -> torch.Tensor:
    """Payload lengths. A row that runs do not make smaller is stored raw.

    :param runs: ``int64``, runs of each row
    :param nbytes: bytes of a row
    :param run_nbytes: bytes of a run
    """
    return torch.clamp(runs * run_nbytes, max=nbytes)


def measure(rows: torch.Tensor, *, item: int) -> Measured:
    """Compute the payload lengths of rows.

    :param rows: ``uint8``, one row per payload
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

    :param rows: the rows given to :func:`measure`
    :param measured: its result
    :param offsets: ``int64``, offset of each payload in ``out``
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
    ends = (element + 1).view(torch.uint8).view(-1, 8)  # little-endian on everything that torch runs on
    out[_spans(offsets[row], width, width, run)] = ends[:, :width]
    values = rows.reshape(number, nbytes // item, item)[row, element]
    out[_spans((offsets + runs * width)[row], item, item, run)] = values


def _spans(begins: torch.Tensor, step: int, nbytes: int, number: torch.Tensor | int = 0) -> torch.Tensor:
    """Byte indices: ``nbytes`` for each begin, shifted by ``number`` steps."""
    return (begins + number * step)[:, None] + torch.arange(nbytes, device=begins.device)
