"""Encodes rows on the device as run-length payloads with Triton. ``docs/rle-format.md`` describes the format.

One program handles one tile of one row. The position of a payload is known only when all runs of all rows are counted,
so there are two passes: :func:`measure` counts, :func:`write` writes.
"""

from __future__ import annotations

import torch
import triton.language as tl

from sb3_extra_buffers.gpu_buffers.kernels.jit import jit
from sb3_extra_buffers.gpu_buffers.kernels.launch import launch_device, launch_options
from sb3_extra_buffers.gpu_buffers.kernels.rle_reference import Measured, end_nbytes, payload_lengths

#: Bytes of a row per program. With twice as many, writing needs twice the registers and spills some.
BLOCK = 512
#: Registers per thread.
REGISTERS = 64


def measure(rows: torch.Tensor, *, item: int, block: int = BLOCK) -> Measured:
    """Compute the payload lengths of rows, without waiting for the device.

    :param rows: ``uint8``, each row contiguous
    :param item: bytes of an element: 1, 2, 4, 8 or 16
    :param block: bytes per program, a power of two of at least 16; the same for :func:`write`
    """
    number, nbytes = rows.shape
    count = nbytes // item
    width = end_nbytes("rle_encode", count, item)
    tiles = -(-nbytes // block)
    counts = torch.empty((number, tiles), dtype=torch.int32, device=rows.device)
    if number:
        with launch_device(rows):
            count_runs[(number * tiles,)](
                rows,
                counts,
                count,
                rows.stride(0),
                tiles,
                ITEM=item,
                BLOCK=block,
                **launch_options(REGISTERS),
            )
    through = torch.cumsum(counts, 1, dtype=torch.int64)
    return Measured(payload_lengths(through[:, -1], nbytes, width + item), through - counts)


def write(
    rows: torch.Tensor,
    measured: Measured,
    offsets: torch.Tensor,
    out: torch.Tensor,
    *,
    item: int,
    block: int = BLOCK,
) -> None:
    """Write the payloads of rows, without waiting for the device.

    :param rows: the rows given to :func:`measure`
    :param measured: its result
    :param offsets: ``int64``, offset of each payload in ``out``; multiples of 16, with room for the payload
    :param out: ``uint8``, contiguous, its address a multiple of 16
    :param item: bytes of an element
    :param block: bytes per program
    """
    number, nbytes = rows.shape
    count = nbytes // item
    tiles = -(-nbytes // block)
    if not number:
        return
    with launch_device(rows):
        write_payloads[(number * tiles,)](
            rows,
            measured.notes,
            measured.lengths,
            offsets,
            out,
            count,
            rows.stride(0),
            tiles,
            ITEM=item,
            WIDTH=end_nbytes("rle_encode", count, item),
            BLOCK=block,
            **launch_options(REGISTERS),
        )


@jit
def ends_run(tile: tl.tensor, rest: tl.tensor, ITEM: tl.constexpr, ELEMENTS: tl.constexpr) -> tl.tensor:
    """Mask of the elements of a tile that end a run: those unlike their successor, and the last of the row.

    ``rest`` is the number of elements from the start of the tile to the end of the row.
    """
    element = tl.arange(0, ELEMENTS)
    inside = element < rest
    followed = element < rest - 1
    if ITEM == 1:
        here = tl.load(tile + element, mask=inside, other=0)
        differs = here != tl.load(tile + element + 1, mask=followed, other=0)
    else:
        byte = element[:, None] * ITEM + tl.arange(0, ITEM)[None, :]
        here = tl.load(tile + byte, mask=inside[:, None], other=0)
        after = tl.load(tile + byte + ITEM, mask=followed[:, None], other=0)
        differs = tl.max((here != after).to(tl.int32), axis=1) > 0
    return inside & (differs | (element == rest - 1))


@jit
def count_runs(
    rows: tl.tensor,
    counts: tl.tensor,
    count: tl.tensor,
    stride: tl.tensor,
    tiles: tl.tensor,
    ITEM: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Store the number of runs that end in a tile."""
    ELEMENTS: tl.constexpr = BLOCK // ITEM
    row = tl.program_id(0) // tiles
    first = (tl.program_id(0) % tiles).to(tl.int64) * ELEMENTS
    tile = rows + row.to(tl.int64) * stride + first * ITEM
    # Capped just above the tile size, so the rest of the arithmetic is 32-bit.
    rest = tl.minimum(count - first, ELEMENTS + 1).to(tl.int32)
    last = ends_run(tile, rest, ITEM, ELEMENTS)
    tl.store(counts + tl.program_id(0), tl.sum(last.to(tl.int32), axis=0))


@jit
def write_payloads(
    rows: tl.tensor,
    before: tl.tensor,
    lengths: tl.tensor,
    offsets: tl.tensor,
    out: tl.tensor,
    count: tl.tensor,
    stride: tl.tensor,
    tiles: tl.tensor,
    ITEM: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Write the runs that end in a tile, or the tile itself if the row is stored raw."""
    ELEMENTS: tl.constexpr = BLOCK // ITEM
    END: tl.constexpr = tl.uint8 if WIDTH == 1 else tl.uint16 if WIDTH == 2 else tl.uint32 if WIDTH == 4 else tl.uint64
    # Images have fewer than 65,536 elements: 32-bit indices need half the registers.
    NUMBER: tl.constexpr = tl.int32 if WIDTH <= 2 else tl.int64
    row = tl.program_id(0) // tiles
    first = (tl.program_id(0) % tiles).to(tl.int64) * ELEMENTS
    tile = rows + row.to(tl.int64) * stride + first * ITEM
    length = tl.load(lengths + row)
    payload = tl.multiple_of(out + tl.load(offsets + row), 16)
    rest = tl.minimum(count - first, ELEMENTS + 1).to(tl.int32)
    if length == (count - first + first) * ITEM:
        copied = tl.arange(0, BLOCK)
        inside = copied < rest * ITEM
        tl.store(payload + first * ITEM + copied, tl.load(tile + copied, mask=inside, other=0), mask=inside)
    else:
        start = tl.load(before + tl.program_id(0))
        ends = payload.to(tl.pointer_type(END)) + start
        values = payload + length // (WIDTH + ITEM) * WIDTH + start * ITEM
        last = ends_run(tile, rest, ITEM, ELEMENTS)
        run = tl.cumsum(last.to(tl.int32), axis=0) - 1
        element = tl.arange(0, ELEMENTS)
        tl.store(ends + run, (first.to(NUMBER) + 1 + element).to(END), mask=last)
        if ITEM == 1:
            tl.store(values + run, tl.load(tile + element, mask=last, other=0), mask=last)
        else:
            byte = tl.arange(0, ITEM)[None, :]
            value = tl.load(tile + element[:, None] * ITEM + byte, mask=last[:, None], other=0)
            tl.store(values + run[:, None] * ITEM + byte, value, mask=last[:, None])
