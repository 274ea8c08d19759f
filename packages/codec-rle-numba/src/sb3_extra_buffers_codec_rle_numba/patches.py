"""Patches and frames, compiled: the bytes of ``sb3_extra_buffers.frames.packing``.

As in ``rle_jit.py``, everything is an address or a ``uint64``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sb3_extra_buffers_codec_rle_numba.jit import (
    BLOCK,
    copy,
    copy_block,
    helper,
    load,
    outlined,
    prefetch,
    store,
    trailing_zeros,
)

U = np.uint64
_WORD = U(0)
_MAX_GAP, _MAX_STEP = U(2), U(255)
#: A step of size 0 skips 256 times as many bytes.
_LEAP_BITS = U(8)
#: Zeros at the end of a chunk.
PADDING = U(7)
_BLOCK = U(BLOCK)
#: Distance of prefetching. By itself, a processor reads ahead to the end of a page only.
_AHEAD = U(4096)


@helper
def load_count(address: Any, width: Any) -> Any:
    """Read the number of steps of a patch."""
    return U(load(address, np.uint16(0))) if width == U(2) else U(load(address, np.uint32(0)))


@helper
def store_count(address: Any, width: Any, count: Any) -> None:
    """Write the number of steps of a patch."""
    if width == U(2):
        store(address, np.uint16(count))
    else:
        store(address, np.uint32(count))


@helper
def _blocks_differ(first: Any, second: Any) -> Any:
    """Whether 64 bytes differ; LLVM compares them in wide registers."""
    differing = _WORD
    for word in range(U(8)):
        differing |= load(first + U(word) * U(8), _WORD) ^ load(second + U(word) * U(8), _WORD)
    return differing != _WORD


@helper
def _next_difference(old: Any, new: Any, byte: Any, nbytes: Any) -> Any:
    while byte + _BLOCK <= nbytes and not _blocks_differ(old + byte, new + byte):
        prefetch(new + byte + _AHEAD)
        byte += _BLOCK
    while byte + U(8) <= nbytes:
        differing = load(old + byte, _WORD) ^ load(new + byte, _WORD)
        if differing:
            return byte + (trailing_zeros(differing) >> U(3))
        byte += U(8)
    while byte < nbytes:
        if load(old + byte, np.uint8(0)) != load(new + byte, np.uint8(0)):
            return byte
        byte += U(1)
    return nbytes


@helper
def write_patch(old: Any, new: Any, nbytes: Any, steps: Any, content: Any) -> Any:
    """Write the steps and the content of the patch from one frame to another; return where both end.

    Up to seven bytes after the content are overwritten.
    """
    last = U(0)
    begin = _next_difference(old, new, U(0), nbytes)
    while begin < nbytes:
        end = begin + U(1)
        following = _next_difference(old, new, end, nbytes)
        while following < nbytes and following - end <= _MAX_GAP:
            end = following + U(1)
            following = _next_difference(old, new, end, nbytes)
        skip = begin - last
        far = skip >> _LEAP_BITS
        while far:
            leap = min(far, _MAX_STEP)
            store(steps, np.uint16(leap))
            steps += U(2)
            far -= leap
        skip &= _MAX_STEP
        while begin < end:
            size = min(end - begin, _MAX_STEP)
            store(steps, np.uint16(skip | (size << U(8))))
            if size <= U(8) and begin + U(8) <= nbytes:
                store(content, load(new + begin, _WORD))  # the next bytes overwrite the excess
            else:
                copy(content, new + begin, size)
            steps += U(2)
            content += size
            begin += size
            skip = U(0)
        last, begin = end, following
    return steps, content


@helper
def apply_patch(frame: Any, nbytes: Any, steps: Any, count: Any, content: Any, limit: Any) -> Any:
    """Apply a patch to a frame; return where the content of the next patch begins, or 0 if this one is damaged.

    ``limit`` is the end of the chunk's content. Eight more bytes are read there at most.
    """
    place, end = frame, frame + nbytes
    for _ in range(count):
        step = U(load(steps, np.uint16(0)))
        steps += U(2)
        size = step >> U(8)
        skip = step & _MAX_STEP
        place += skip if size else skip << _LEAP_BITS
        if place + size > end or content + size > limit:
            return U(0)
        if size <= U(8) and place + U(8) <= end:
            # Most steps are short: one load, one mask and one store instead of a call. A step of size 0 stores the old
            # bytes again: a branch for it would be mispredicted.
            keep = ~_WORD << (size << U(3)) if size < U(8) else _WORD
            store(place, (load(place, _WORD) & keep) | (load(content, _WORD) & ~keep))
        else:
            copy(place, content, size)
        content += size
        place += size
    return content


@outlined
def apply_patch_at_page_end(frame: Any, nbytes: Any, steps: Any, count: Any, content: Any, limit: Any) -> Any:
    """The same for a chunk that ends with its page: no byte after its padding is read.

    In all other chunks, the padding has seven bytes and the eighth is in the same page. Only a damaged chunk has a step
    of size 0 after its last byte of content.
    """
    place, end = frame, frame + nbytes
    for _ in range(count):
        step = U(load(steps, np.uint16(0)))
        steps += U(2)
        size = step >> U(8)
        skip = step & _MAX_STEP
        place += skip if size else skip << _LEAP_BITS
        if place + size > end or content + size > limit:
            return U(0)
        copy(place, content, size)
        content += size
        place += size
    return content


@helper
def ends_with_page(address: Any) -> Any:
    """Whether the byte at this address may be in another page than the one before it; pages may be larger."""
    return address & U(4095) == U(0)


@helper
def copy_frame(target: Any, source: Any, nbytes: Any) -> None:
    """Copy a frame to memory that does not overlap it.

    ``memcpy`` uses ``rep movsb`` for this size, which takes two to three times as long on some processors if addresses
    are not aligned to cache lines (AMD EPYC, frames of 7,056 bytes: 14 GB/s, and 28 to 45 GB/s here).
    """
    if nbytes < _BLOCK:
        copy(target, source, nbytes)
        return
    last, byte = nbytes - _BLOCK, U(0)
    while byte < last:
        copy_block(target + byte, source + byte)
        byte += _BLOCK
    copy_block(target + last, source + last)


@helper
def differing_block(first: Any, second: Any, nbytes: Any) -> Any:
    """The begin of the first 64 bytes in which two frames differ, or of the last bytes; the size if they are equal."""
    byte = U(0)
    while byte + _BLOCK <= nbytes:
        prefetch(first + byte + _AHEAD)
        if _blocks_differ(first + byte, second + byte):
            return byte
        byte += _BLOCK
    while byte < nbytes:
        if load(first + byte, np.uint8(0)) != load(second + byte, np.uint8(0)):
            return byte
        byte += U(1)
    return nbytes


@helper
def equal(first: Any, second: Any, nbytes: Any) -> Any:
    """Whether two blocks of memory are equal."""
    return differing_block(first, second, nbytes) == nbytes


@helper
def differ_at(first: Any, second: Any, byte: Any, nbytes: Any) -> Any:
    """Whether two frames differ in the 64 bytes that begin here, if there are so many."""
    return byte + _BLOCK <= nbytes and _blocks_differ(first + byte, second + byte)


@helper
def is_blank(block: Any, nbytes: Any) -> Any:
    """Whether all bytes are zero."""
    byte = U(0)
    while byte + U(8) <= nbytes:
        if load(block + byte, _WORD):
            return False
        byte += U(8)
    while byte < nbytes:
        if load(block + byte, np.uint8(0)):
            return False
        byte += U(1)
    return True


@helper
def gather_frame(row: Any, frame: Any, index: Any, pixels: Any, depth: Any, group: Any) -> None:
    """Copy one frame of an observation."""
    if pixels == U(1):
        copy(frame, row + index * group, group)
        return
    source, stride = row + index * group, depth * group
    if group == U(1):
        for pixel in range(pixels):
            store(frame + U(pixel), load(source + U(pixel) * stride, np.uint8(0)))
    else:
        for _ in range(pixels):
            copy(frame, source, group)
            frame += group
            source += stride


@helper
def scatter_frames(frames: Any, row: Any, pixels: Any, depth: Any, group: Any) -> None:
    """Copy contiguous frames into an observation where they are interleaved."""
    nbytes = pixels * group
    if group == U(1) and depth == U(4):
        # Four gray frames make one word per pixel; written like this, it compiles to wide stores.
        for pixel in range(pixels):
            source = frames + U(pixel)
            word = U(load(source, np.uint8(0))) | (U(load(source + nbytes, np.uint8(0))) << U(8))
            word |= U(load(source + nbytes + nbytes, np.uint8(0))) << U(16)
            word |= U(load(source + nbytes + nbytes + nbytes, np.uint8(0))) << U(24)
            store(row + U(pixel) * U(4), np.uint32(word))
        return
    for index in range(depth):
        target, source = row + U(index) * group, frames + U(index) * nbytes
        for _ in range(pixels):
            copy(target, source, group)
            target += depth * group
            source += group


@helper
def fill_zero(target: Any, nbytes: Any) -> None:
    """Set bytes to zero."""
    while nbytes >= U(8):
        store(target, U(0))
        target += U(8)
        nbytes -= U(8)
    while nbytes:
        store(target, np.uint8(0))
        target += U(1)
        nbytes -= U(1)
