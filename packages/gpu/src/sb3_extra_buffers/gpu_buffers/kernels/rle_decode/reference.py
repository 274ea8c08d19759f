"""Run-length payloads into the rows of a batch, in plain torch.

Only ``uint8``, signed integers and ``float32`` are computed with: MPS and torch's operators know little else.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from sb3_extra_buffers.errors import PayloadError
from sb3_extra_buffers.gpu_buffers.kernels.elements import end_nbytes

_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def decode(
    payloads: Sequence[torch.Tensor], out: torch.Tensor, *, count: int, item: int, scale: float | None = None
) -> None:
    """Decode payload ``i`` into row ``i``.

    :param payloads: ``uint8``, one slice for each
    :param out: a row for each: ``uint8`` of ``count * item``, or ``float32`` of ``count`` elements with a ``scale``
    :param count: elements of a cell
    :param item: bytes of an element: 1, 2, 4, 8 or 16
    :param scale: rows are ``float32``, each unsigned byte times this; only for elements of one byte
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
    """The cells of payloads of runs, side by side.

    The value of each run, less the value before it, stands where the run begins; the sum up to an element is its value.
    Bytes wrap around, so that this is exact, without a table of indices as large as the cells.
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
    if device.type == "mps":  # where it is not certain that sums of bytes wrap around
        return (torch.cumsum(changes, 0, dtype=torch.int32) & 255).to(torch.uint8).view(number, count * item)
    return torch.cumsum(changes, 0, dtype=torch.uint8).view(number, count * item)


def _load_ends(payloads: list[torch.Tensor], runs: list[int], width: int) -> torch.Tensor:
    """Run ends as ``int64``. Joined first: a slice that begins at an odd byte cannot be viewed as words."""
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
