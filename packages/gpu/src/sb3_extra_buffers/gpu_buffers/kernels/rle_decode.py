"""Decodes run-length payloads of a batch with Triton. ``docs/rle-format.md`` describes the format.

One program decodes one tile of one cell. Positions are bytes for every element size: values are not aligned to their
size, so they are copied byte by byte, and one kernel serves all sizes.
"""

from __future__ import annotations

import torch
import triton.language as tl

from sb3_extra_buffers.gpu_buffers.kernels.jit import jit
from sb3_extra_buffers.gpu_buffers.kernels.launch import launch_device, launch_options
from sb3_extra_buffers.gpu_buffers.kernels.rle_reference import end_nbytes

#: Bytes of a cell that one program decodes: sixteen per thread, which is one store.
BLOCK = 2048
#: Registers per thread.
REGISTERS = 64


def decode(
    addresses: torch.Tensor,
    lengths: torch.Tensor,
    out: torch.Tensor,
    status: torch.Tensor,
    *,
    count: int,
    item: int,
    scale: float | None = None,
    block: int = BLOCK,
) -> None:
    """Decode payload ``i`` into row ``i``, without waiting for the device.

    All tensors are on one device. The row of a damaged payload is undefined; the other rows are correct.

    :param addresses: ``int64``, addresses of the payloads on the device; multiples of 16
    :param lengths: ``int64`` or ``int32``, bytes of each payload
    :param out: one contiguous row per payload: ``uint8`` of ``count * item``, or ``float32`` of ``count`` elements with
        a ``scale``. Stores are wide if the row size and the row stride are multiples of 16 bytes
    :param status: one ``int32``; if payloads are damaged, it becomes one more than the largest of their indices
    :param count: elements of a cell
    :param item: bytes of an element: 1, 2, 4, 8 or 16
    :param scale: if given, rows are ``float32``: each unsigned byte times this; only for elements of one byte
    :param block: bytes that one program decodes, a power of two of at least 16
    """
    width = end_nbytes("rle_decode", count, item)
    tiles = -(-count * item // block)
    if not len(addresses):
        return
    with launch_device(out):
        decode_cells[(len(addresses) * tiles,)](
            addresses,
            lengths,
            out,
            status,
            count,
            out.stride(0),
            tiles,
            1.0 if scale is None else scale,
            ITEM=item,
            WIDTH=width,
            SCALED=scale is not None,
            BLOCK=block,
            **launch_options(REGISTERS),
        )


@jit
def first_run(ends: tl.tensor, runs: tl.tensor, element: tl.tensor) -> tl.tensor:
    """Index of the first run that ends after an element, or of the last run: always a valid index."""
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
    """Number of runs from ``first`` to ``stop`` that end no later than their predecessor."""
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
    """For each byte of a tile, the number of run ends in the tile up to it.

    Ends are ascending, so a tile contains at most as many as it has elements.
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
    """Decode one tile of one cell. The checks are those of ``docs/rle-format.md``, section "Reading"."""
    ELEMENTS: tl.constexpr = BLOCK // ITEM
    RUN: tl.constexpr = WIDTH + ITEM
    PIECE: tl.constexpr = ELEMENTS if ELEMENTS < 512 else 512
    END: tl.constexpr = tl.uint8 if WIDTH == 1 else tl.uint16 if WIDTH == 2 else tl.uint32 if WIDTH == 4 else tl.uint64
    # Images have fewer than 65,536 elements: 32-bit indices need half the registers.
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
            # There are fewer runs than elements, so the tiles of a cell together check all runs.
            damaged = damaged | (count_falling(ends, runs, first, tl.minimum(runs, first + ELEMENTS), PIECE) > 0)
        # Runs are counted from the first run of the tile, so the values per thread fit in 32 bits.
        low = first_run(ends, runs, first)
        number = tl.minimum(runs - low, ELEMENTS).to(tl.int32)
        run = count_ends(ends + low, number, first, ITEM, BLOCK)
        # The limit is needed for damaged payloads whose last run ends too early.
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
