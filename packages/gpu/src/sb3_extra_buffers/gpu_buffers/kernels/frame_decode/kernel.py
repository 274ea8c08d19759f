"""Chunks of frames into the frames that a batch needs. ``docs/frames.md`` describes their bytes.

A program makes the frames of one chunk, one after the other, in a scratch frame of its own: a patch changes the frame
before it, so that there is nothing to be done side by side but the steps of a patch and the bytes of a frame. Chunks
are many, and each is a program.
"""

from __future__ import annotations

import triton.language as tl

from sb3_extra_buffers.gpu_buffers.kernels.jit import jit

#: Zeros behind a chunk.
PADDING = tl.constexpr(7)
#: Steps of a patch that are taken at once.
STEPS = tl.constexpr(128)
#: A step that puts nothing goes so many times as far.
LEAP = tl.constexpr(256)
#: Bytes that all of these steps put at once. Most steps put fewer than this.
PIECE = tl.constexpr(8)


@jit
def copy_frame(
    source: tl.tensor,
    target: tl.tensor,
    nbytes: tl.tensor,
    GROUP: tl.constexpr,
    STRIDE: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Copy a frame, group by group, each ``STRIDE`` bytes behind the one before it."""
    for begin in range(0, nbytes, BLOCK):
        byte = begin + tl.arange(0, BLOCK)
        inside = byte < nbytes
        value = tl.load(source + byte, mask=inside, other=0)
        if GROUP == STRIDE:
            tl.store(target + byte, value, mask=inside)
        else:
            tl.store(target + byte // GROUP * STRIDE + byte % GROUP, value, mask=inside)


@jit
def content_begin(counts: tl.tensor, size: tl.tensor, table: tl.tensor) -> tl.tensor:
    """Where the content of a chunk begins: behind the steps of all its frames."""
    steps = table * 0
    for begin in range(0, size, STEPS):
        frame = begin + tl.arange(0, STEPS)
        steps += tl.sum(tl.load(counts + frame, mask=frame < size, other=0).to(tl.int64), axis=0)
    return table + 2 * steps


@jit
def apply_patch(
    frame: tl.tensor,
    nbytes: tl.tensor,
    payload: tl.tensor,
    steps: tl.tensor,
    number: tl.tensor,
    content: tl.tensor,
    limit: tl.tensor,
) -> tl.tensor:
    """Change a frame; return where the content of the next patch begins, or -1 if this one is damaged."""
    place = number * 0
    begin = number * 0
    while (begin < number) & (content >= 0):
        index = begin + tl.arange(0, STEPS)
        step = tl.load(steps + index, mask=index < number, other=0).to(tl.int32)
        put = step >> 8
        skip = step & 255
        way = tl.where(put == 0, skip * LEAP, skip + put)
        total = tl.sum(way, axis=0)
        total_put = tl.sum(put, axis=0)
        if (place + total > nbytes) | (content + total_put > limit):
            content = content * 0 - 1
        else:
            target = frame + (place + tl.cumsum(way, axis=0) - put)[:, None]
            source = payload + content + (tl.cumsum(put, axis=0) - put)[:, None]
            # Where steps put bytes they go on behind the step before, so no two of them put the same byte.
            for piece in range(0, tl.max(put, axis=0), PIECE):
                byte = piece + tl.arange(0, PIECE)[None, :]
                inside = byte < put[:, None]
                tl.store(target + byte, tl.load(source + byte, mask=inside, other=0), mask=inside)
            place += total
            content += total_put
        begin += STEPS
    return content


@jit
def decode_chunks(
    addresses: tl.tensor,
    lengths: tl.tensor,
    sizes: tl.tensor,
    bases: tl.tensor,
    need_begin: tl.tensor,
    need_frame: tl.tensor,
    need_target: tl.tensor,
    scratch: tl.tensor,
    out: tl.tensor,
    status: tl.tensor,
    nbytes: tl.tensor,
    WIDTH: tl.constexpr,
    GROUP: tl.constexpr,
    STRIDE: tl.constexpr,
    ALIGNMENT: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Make the frames of one chunk up to the last that is needed, and copy those that are needed to their places."""
    chunk = tl.program_id(0)
    payload = tl.multiple_of(tl.load(addresses + chunk).to(tl.pointer_type(tl.uint8)), 16)
    base = tl.multiple_of(tl.load(bases + chunk).to(tl.pointer_type(tl.uint8)), ALIGNMENT)
    limit = tl.load(lengths + chunk).to(tl.int64) - PADDING
    size = tl.load(sizes + chunk)
    need = tl.load(need_begin + chunk)
    stop = tl.load(need_begin + chunk + 1)
    table = size.to(tl.int64) * WIDTH
    counts = payload.to(tl.pointer_type(tl.uint16 if WIDTH == 2 else tl.uint32))
    steps = (payload + table).to(tl.pointer_type(tl.uint16))
    frame = scratch + chunk.to(tl.int64) * nbytes
    content = table
    sound = (size > 0) & (table <= limit)
    if sound:
        content = content_begin(counts, size, table)
        sound = content <= limit
        copy_frame(base, frame, nbytes, 1, 1, BLOCK)
    done = size * 0
    while (need < stop) & sound:
        wanted = tl.load(need_frame + need)
        sound = wanted < size
        while (done <= wanted) & sound:
            number = tl.load(counts + done).to(tl.int32)
            # Threads change bytes that others have written, and that others may still be copying.
            tl.debug_barrier()
            content = apply_patch(frame, nbytes, payload, steps, number, content, limit)
            sound = content >= 0
            steps += number
            done += 1
        if sound:
            tl.debug_barrier()
            target = tl.multiple_of(tl.load(need_target + need), ALIGNMENT)
            copy_frame(frame, out + target, nbytes, GROUP, STRIDE, BLOCK)
        need += 1
    if sound == 0:
        tl.atomic_max(status, chunk + 1)
