"""Gather-decode of run-length payloads. ``docs/rle-format.md`` describes their bytes.

A program makes one tile of one cell. Positions are bytes, for every size of element: values are not aligned to their
size, so they are moved byte by byte, and so all sizes share one kernel.
"""

from __future__ import annotations

import triton.language as tl

from sb3_extra_buffers.gpu_buffers.kernels.jit import jit


@jit
def first_run(ends: tl.tensor, runs: tl.tensor, element: tl.tensor) -> tl.tensor:
    """The first run that ends behind an element, or the last run: always one that exists."""
    low = runs * 0
    high = runs - 1
    while low < high:
        middle = (low + high) // 2
        if tl.load(ends + middle).to(runs.dtype) > element:
            high = middle
        else:
            low = middle + 1
    return low


@jit
def count_falling(
    ends: tl.tensor, runs: tl.tensor, first: tl.tensor, stop: tl.tensor, PIECE: tl.constexpr
) -> tl.tensor:
    """How many runs end no later than the one before them, from ``first`` to ``stop`` of all ``runs``."""
    falling = tl.zeros([PIECE], tl.int32)
    while first < stop:
        number = tl.minimum(stop - first, PIECE).to(tl.int32)
        run = tl.arange(0, PIECE)
        here = tl.load(ends + first + run, mask=run < number, other=0).to(runs.dtype)
        has_before = (run < number) & (first + run > 0)
        before = tl.load(ends + first + run - 1, mask=has_before, other=0).to(runs.dtype)
        falling += ((run < number) & (here <= before)).to(tl.int32)
        first += PIECE
    return tl.sum(falling, axis=0)


@jit
def count_ends(
    ends: tl.tensor, number: tl.tensor, first: tl.tensor, ITEM: tl.constexpr, BLOCK: tl.constexpr
) -> tl.tensor:
    """How many of some run ends lie within a tile, up to each of its bytes.

    Ends rise, so a tile meets at most as many as it has elements.
    """
    ELEMENTS: tl.constexpr = BLOCK // ITEM
    run = tl.arange(0, ELEMENTS)
    end = tl.load(ends + run, mask=run < number, other=0).to(first.dtype) - first
    meets = (run < number) & (end > 0) & (end < ELEMENTS)
    place = tl.where(meets, end, 0).to(tl.int32)
    return tl.cumsum(tl.histogram(place * ITEM, BLOCK, mask=meets), axis=0)


@jit
def decode_cells(
    addresses: tl.tensor,
    lengths: tl.tensor,
    out: tl.tensor,
    status: tl.tensor,
    count: tl.tensor,
    stride: tl.tensor,
    tiles: tl.tensor,
    scale: tl.tensor,
    ITEM: tl.constexpr,
    WIDTH: tl.constexpr,
    SCALED: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Make one tile of one cell. The checks are those of ``docs/rle-format.md``, section «Reading»."""
    ELEMENTS: tl.constexpr = BLOCK // ITEM
    RUN: tl.constexpr = WIDTH + ITEM
    PIECE: tl.constexpr = ELEMENTS if ELEMENTS < 512 else 512
    END: tl.constexpr = tl.uint8 if WIDTH == 1 else tl.uint16 if WIDTH == 2 else tl.uint32 if WIDTH == 4 else tl.uint64
    # Images have less than 65,536 elements, and their numbers take half the registers.
    NUMBER: tl.constexpr = tl.int32 if WIDTH <= 2 else tl.int64
    cell = tl.program_id(0) // tiles
    tile = tl.program_id(0) % tiles
    payload = tl.multiple_of(tl.load(addresses + cell).to(tl.pointer_type(tl.uint8)), 16)
    length = tl.load(lengths + cell).to(tl.int64)
    begin = tile.to(tl.int64) * BLOCK
    rest = (count - tile.to(tl.int64) * ELEMENTS) * ITEM
    byte = tl.arange(0, BLOCK)
    inside = byte < tl.minimum(rest, BLOCK).to(tl.int32)
    nbytes = rest + begin
    damaged = (length < RUN) | (length > nbytes) | (length % RUN != 0)
    if length == nbytes:
        damaged = length < 0
        value = tl.load(payload + begin + byte, mask=inside, other=0)
    elif damaged:
        value = tl.zeros([BLOCK], tl.uint8)
    else:
        runs = (length // RUN).to(NUMBER)
        first = tile.to(NUMBER) * ELEMENTS
        ends = payload.to(tl.pointer_type(END))
        damaged = tl.load(ends + runs - 1).to(NUMBER) != count
        if first < runs:
            # There are fewer runs than elements, so that together the tiles of a cell look at all of them.
            damaged = damaged | (count_falling(ends, runs, first, tl.minimum(runs, first + ELEMENTS), PIECE) > 0)
        # The runs of a tile are counted from its first one: what every thread has many of then takes 32 bits.
        low = first_run(ends, runs, first)
        number = tl.minimum(runs - low, ELEMENTS).to(tl.int32)
        run = count_ends(ends + low, number, first, ITEM, BLOCK)
        # The limit is for damaged payloads, whose last run ends too early.
        run = tl.minimum(run, tl.minimum(runs - 1 - low, ELEMENTS).to(tl.int32))
        values = payload + runs * WIDTH + low * ITEM
        value = tl.load(values + run * ITEM + byte % ITEM, mask=inside, other=0)
    if damaged:
        tl.atomic_max(status, cell + 1)
    target = out + cell.to(tl.int64) * stride + begin + byte
    if SCALED:
        tl.store(target, value.to(tl.float32) * scale, mask=inside)
    else:
        tl.store(target, value, mask=inside)
