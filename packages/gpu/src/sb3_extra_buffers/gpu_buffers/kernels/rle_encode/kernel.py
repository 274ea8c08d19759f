"""Rows into run-length payloads, in two passes. ``docs/rle-format.md`` describes the bytes.

A program looks at one tile of one row. Where a payload goes is not known before all runs of all rows are counted, so
the tiles are looked at twice: to count, and to write.
"""

from __future__ import annotations

import triton.language as tl

from sb3_extra_buffers.gpu_buffers.kernels.jit import jit


@jit
def ends_run(tile: tl.tensor, rest: tl.tensor, ITEM: tl.constexpr, ELEMENTS: tl.constexpr) -> tl.tensor:
    """Which elements of a tile are the last of their run: those unlike their successor, and that of the row.

    ``rest`` is how many elements the row has from here on.
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
    """Note how many runs end in a tile."""
    ELEMENTS: tl.constexpr = BLOCK // ITEM
    row = tl.program_id(0) // tiles
    first = (tl.program_id(0) % tiles).to(tl.int64) * ELEMENTS
    tile = rows + row.to(tl.int64) * stride + first * ITEM
    # More than a tile has make no difference; what is left fits the arithmetic of 32 bits.
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
    # Images have less than 65,536 elements, and their numbers take half the registers.
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
