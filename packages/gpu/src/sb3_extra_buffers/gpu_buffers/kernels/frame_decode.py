"""Decodes the frames that a batch needs from their chunks with Triton. ``docs/frames.md`` describes the format.

One program decodes the frames of one chunk in order, in a scratch frame of its own: a patch changes the frame before
it, so only the steps of a patch and the bytes of a frame are parallel. A batch has many chunks.
"""

from __future__ import annotations

import torch
import triton.language as tl

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.frames.packing import count_dtype
from sb3_extra_buffers.gpu_buffers.kernels.frame_reference import Needs
from sb3_extra_buffers.gpu_buffers.kernels.jit import jit
from sb3_extra_buffers.gpu_buffers.kernels.launch import launch_device, launch_options

#: Bytes of a frame that are copied at once: sixteen per thread, which is one store.
BLOCK = 2048
#: Registers per thread.
REGISTERS = 128
#: Zeros at the end of a chunk.
PADDING = tl.constexpr(7)
#: Steps of a patch that are applied at once.
STEPS = tl.constexpr(128)
#: A step that puts no bytes skips this many times as far.
LEAP = tl.constexpr(256)
#: Bytes that each of these steps puts at once. Most steps put fewer.
PIECE = tl.constexpr(8)


def decode(
    addresses: torch.Tensor,
    lengths: torch.Tensor,
    sizes: torch.Tensor,
    bases: torch.Tensor,
    needs: Needs,
    scratch: torch.Tensor,
    out: torch.Tensor,
    status: torch.Tensor,
    *,
    frame_nbytes: int,
    group: int,
    stride: int,
    alignment: int = 1,
    block: int = BLOCK,
) -> None:
    """Decode chunks and copy the needed frames to their targets, without waiting for the device.

    All tensors are on one device. Byte ``p`` of a frame goes to ``target + p // group * stride + p % group``: frames
    that are interleaved pixel by pixel in an observation have one group per pixel, others are one group. Frames of a
    damaged chunk are not written from the damage on.

    :param addresses: ``int64``, addresses of the chunks on the device; multiples of 16
    :param lengths: ``int64`` or ``int32``, bytes of each chunk
    :param sizes: ``int32``, frames of each chunk
    :param bases: ``int64``, address of the reference frame of each chunk, which its first patch changes
    :param needs: the needed frames and their targets
    :param scratch: ``uint8``, one frame per chunk, contiguous
    :param out: ``uint8``, contiguous
    :param status: one ``int32``; if chunks are damaged, it becomes one more than the largest of their indices
    :param frame_nbytes: size of a frame
    :param group: bytes of a frame that are contiguous in the output
    :param stride: distance between groups
    :param alignment: a power of two that divides every reference frame's address and every target; 16 gives wide copies
    :param block: bytes that are copied at once, a power of two
    """
    last = (frame_nbytes - 1) // group * stride
    if last >= 1 << 31:
        raise ParameterError("frame_decode", "stride", stride, "a frame must lie within two gibibytes")
    if not len(addresses):
        return
    # A whole frame is copied as contiguous groups of one byte, so one compilation serves every frame size.
    group, stride = (1, 1) if group >= frame_nbytes or group == stride else (group, stride)
    with launch_device(out):
        decode_chunks[(len(addresses),)](
            addresses,
            lengths,
            sizes,
            bases,
            needs.begin,
            needs.frame,
            needs.target,
            scratch,
            out,
            status,
            frame_nbytes,
            WIDTH=count_dtype(frame_nbytes).itemsize,
            GROUP=group,
            STRIDE=stride,
            ALIGNMENT=alignment,
            BLOCK=block,
            **launch_options(REGISTERS),
        )


def can_interleave(frame_nbytes: int, depth: int, group: int) -> bool:
    """Whether :func:`interleave` supports observations of this shape: gray frames, two, four or eight of them.

    :param frame_nbytes: size of a frame
    :param depth: frames of an observation
    :param group: bytes of a pixel
    """
    return group == 1 and depth in (2, 4, 8) and frame_nbytes % 16 == 0


def interleave(planes: torch.Tensor, depth: int, *, block: int = BLOCK) -> torch.Tensor:
    """Put the frames of each row together pixel by pixel, in a new tensor, without waiting for the device.

    A frame that is decoded to every fourth byte of its row takes a store for each byte. Here, all loads and stores are
    wide: the frames of a row meet in registers.

    :param planes: ``uint8``, contiguous; each row has ``depth`` frames, one after the other
    :param depth: see :func:`can_interleave`
    :param block: bytes that one program writes, a power of two
    """
    rows, nbytes = planes.shape
    out = torch.empty_like(planes)
    pixels = block // depth
    tiles = -(-nbytes // (depth * pixels))
    if rows:
        with launch_device(out):
            interleave_planes[(rows * tiles,)](
                planes, out, nbytes // depth, tiles, DEPTH=depth, PIXELS=pixels, **launch_options(REGISTERS)
            )
    return out


@jit
def load_plane(row: tl.tensor, nbytes: tl.tensor, plane: tl.constexpr, pixel: tl.tensor) -> tl.tensor:
    """Some pixels of one frame."""
    return tl.load(row + nbytes * plane + pixel, mask=pixel < nbytes, other=0)


@jit
def interleave_planes(
    planes: tl.tensor,
    out: tl.tensor,
    nbytes: tl.tensor,
    tiles: tl.tensor,
    DEPTH: tl.constexpr,
    PIXELS: tl.constexpr,
) -> None:
    """Interleave some pixels of one row."""
    row = tl.program_id(0) // tiles
    first = (tl.program_id(0) % tiles) * PIXELS
    begin = tl.multiple_of(row.to(tl.int64) * nbytes * DEPTH, 16)
    pixel = first + tl.arange(0, PIXELS)
    source = planes + begin
    # Frame 0 and the frame in the middle alternate, then these and the ones between them.
    if DEPTH == 2:
        value = tl.interleave(load_plane(source, nbytes, 0, pixel), load_plane(source, nbytes, 1, pixel))
    elif DEPTH == 4:
        even = tl.interleave(load_plane(source, nbytes, 0, pixel), load_plane(source, nbytes, 2, pixel))
        odd = tl.interleave(load_plane(source, nbytes, 1, pixel), load_plane(source, nbytes, 3, pixel))
        value = tl.interleave(even, odd)
    else:
        zero = tl.interleave(load_plane(source, nbytes, 0, pixel), load_plane(source, nbytes, 4, pixel))
        two = tl.interleave(load_plane(source, nbytes, 2, pixel), load_plane(source, nbytes, 6, pixel))
        one = tl.interleave(load_plane(source, nbytes, 1, pixel), load_plane(source, nbytes, 5, pixel))
        three = tl.interleave(load_plane(source, nbytes, 3, pixel), load_plane(source, nbytes, 7, pixel))
        value = tl.interleave(tl.interleave(zero, two), tl.interleave(one, three))
    byte = tl.arange(0, DEPTH * PIXELS)
    inside = byte < (nbytes - first) * DEPTH
    tl.store(out + begin + first.to(tl.int64) * DEPTH + byte, value, mask=inside)


@jit
def copy_frame(
    source: tl.tensor,
    target: tl.tensor,
    nbytes: tl.tensor,
    GROUP: tl.constexpr,
    STRIDE: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Copy a frame in groups that begin ``STRIDE`` bytes apart."""
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
    """Offset of the content of a chunk: after the steps of all its frames."""
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
    """Apply a patch to a frame; return the offset of the next patch's content, or -1 if this patch is damaged."""
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
            # Each step continues after the previous one, so no two steps put the same byte.
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
    """Decode the frames of one chunk up to the last needed one, and copy the needed ones to their targets."""
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
            # Threads change bytes that other threads have written, or may still be copying.
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
