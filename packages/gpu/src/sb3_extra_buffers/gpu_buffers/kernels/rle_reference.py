"""Run-length payloads in plain torch: the specification of ``rle_decode`` and ``rle_encode``, and the fallback.

It computes with ``uint8``, signed integers and ``float32`` only, the types that MPS and all torch operators support.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from sb3_extra_buffers.codecs.rle import end_dtype
from sb3_extra_buffers.errors import ParameterError, PayloadError

#: Supported element sizes in bytes. They divide a tile, and cover all dtypes of observations.
ITEM_SIZES = (1, 2, 4, 8, 16)
_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

Upload = Callable[[NDArray[Any]], torch.Tensor]


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
    payloads: Sequence[torch.Tensor],
    out: torch.Tensor,
    *,
    count: int,
    item: int,
    scale: float | None = None,
    status: torch.Tensor | None = None,
    upload: Upload | None = None,
) -> None:
    """Decode payload ``i`` into row ``i``.

    With a ``status``, nothing waits for the device: the sizes of all tensors are known on the host. The row of a
    payload with invalid content is then undefined; the other rows are correct.

    :param payloads: ``uint8``, one tensor per payload
    :param out: one row per payload: ``uint8`` of ``count * item`` bytes, or with a ``scale`` ``float32`` of ``count``
    :param count: elements of a cell
    :param item: bytes of an element: 1, 2, 4, 8 or 16
    :param scale: if given, rows are ``float32``: each unsigned byte times this; only for elements of one byte
    :param status: one ``int32``; if payloads have invalid content, it becomes one more than the largest of their
        indices. Without it, that is an error
    :param upload: copies an array to the device without waiting for it
    :raise PayloadError: for a damaged payload
    """
    width = end_nbytes("rle_decode", count, item)
    put = upload or (lambda array: torch.from_numpy(array).to(out.device))
    sizes = [len(payload) for payload in payloads]
    raw = [index for index, size in enumerate(sizes) if size == count * item]
    packed = [index for index, size in enumerate(sizes) if size != count * item]
    for index in packed:
        if sizes[index] % (width + item) or not 0 < sizes[index] < count * item:
            problem = f"its length is neither that of the cell, {count * item}, nor some runs of {width + item} less"
            raise PayloadError("rle", sizes[index], problem, index)
    if raw:
        rows = torch.stack([payloads[index] for index in raw])
        _place(rows, put(np.array(raw)), out, scale)
    if packed:
        runs = [sizes[index] // (width + item) for index in packed]
        numbers, indices = put(np.array([runs, packed]))
        few = [payloads[index] for index in packed]
        rows = _expand(few, runs, numbers, indices, count, item, width, status)
        _place(rows, indices, out, scale)


def _place(rows: torch.Tensor, indices: torch.Tensor, out: torch.Tensor, scale: float | None) -> None:
    cells = rows if scale is None else rows.to(torch.float32).mul_(scale)
    if len(indices) == len(out):
        out.copy_(cells)
    else:
        out[indices] = cells


def _expand(
    payloads: list[torch.Tensor],
    runs: list[int],
    runs_of: torch.Tensor,
    indices: torch.Tensor,
    count: int,
    item: int,
    width: int,
    status: torch.Tensor | None,
) -> torch.Tensor:
    """Decode run-length payloads to cells, one row each.

    The difference between a run's value and the previous value is stored where the run begins; the cumulative sum gives
    the values. Bytes wrap around, so this is exact and needs no index table as large as the cells.
    """
    device, number = payloads[0].device, len(payloads)
    ends = _load_ends(payloads, runs, width)
    values = torch.cat([payload[run * width :] for payload, run in zip(payloads, runs)]).view(-1, item)
    cell_of = torch.repeat_interleave(torch.arange(number, device=device), runs_of, output_size=len(ends))
    lasts = torch.cumsum(runs_of, 0) - 1
    firsts = lasts - runs_of + 1
    begins = torch.zeros_like(ends)
    begins[1:] = ends[:-1]
    begins[firsts] = 0
    damaged = ends <= begins
    damaged[lasts] |= ends[lasts] != count
    if status is not None:
        worst = torch.where(damaged, indices[cell_of] + 1, 0).amax()
        status.copy_(torch.maximum(status, worst.to(status.dtype)))
        begins.clamp_(0, count - 1)  # so that damage stays in its row
    elif damaged.any():
        which = int(cell_of[damaged.nonzero()[0, 0]])
        problem = f"its run ends do not rise to the element count {count}"
        raise PayloadError("rle", len(payloads[which]), problem, int(indices[which]))
    differences = values.clone()
    differences[1:] -= values[:-1]
    differences[firsts] = values[firsts]
    changes = torch.zeros((number * count, item), dtype=torch.uint8, device=device)
    changes.index_copy_(0, begins + cell_of * count, differences)
    cells = changes.view(number, count, item)
    if device.type == "mps":  # it is not certain that sums of bytes wrap around there
        return (torch.cumsum(cells, 1, dtype=torch.int32) & 255).to(torch.uint8).view(number, count * item)
    return torch.cumsum(cells, 1, dtype=torch.uint8).view(number, count * item)


def _load_ends(payloads: list[torch.Tensor], runs: list[int], width: int) -> torch.Tensor:
    """Run ends as ``int64``. They are joined first: a slice at an odd byte offset cannot be viewed as words."""
    joined = torch.cat([payload[: run * width] for payload, run in zip(payloads, runs)])
    ends = joined.view(_WORDS[width]).to(torch.int64)
    return ends if width == 8 else ends & ((1 << 8 * width) - 1)


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
