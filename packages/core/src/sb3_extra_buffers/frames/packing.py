"""The bytes of a chunk: frames as patches, each on the frame before it. ``docs/frames.md`` describes them.

This is the reference, in numpy; compiled kernels make the same bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import PayloadError
from sb3_extra_buffers.views import Bytes, Indices

#: Bytes that changed and lie at most this far apart go into one segment: another one would cost as much.
MAX_GAP = 2
#: The longest segment, and the longest way to it.
MAX_STEP = 255
#: What follows the last byte, so that eight bytes can be read from wherever a segment is.
PADDING = 7


def count_dtype(frame_nbytes: int) -> np.dtype[Any]:
    """What the number of steps of a patch is written as."""
    # A step covers four bytes or more, except for the first and where long ones are cut.
    return np.dtype("<u2") if frame_nbytes <= 1 << 17 else np.dtype("<u4")


def worst_nbytes(frames: int, frame_nbytes: int) -> int:
    """What a chunk takes if no frame has anything in common with the one before it."""
    steps = frame_nbytes // (2 + MAX_GAP) + frame_nbytes // MAX_STEP + 2
    return frames * (count_dtype(frame_nbytes).itemsize + 2 * steps + frame_nbytes) + PADDING


def pack(frames: Bytes, base: Bytes) -> tuple[Bytes, int]:
    """Write frames as patches: the first on ``base``, each other one on the frame before it.

    :param frames: shape ``(n, frame_nbytes)``
    :param base: shape ``(frame_nbytes,)``
    :return: the bytes of the chunk, and how many of them the first patch takes
    """
    patches = [_patch(old, new) for old, new in zip([base, *frames], frames)]
    counts = np.array([len(steps) for steps, _ in patches], count_dtype(frames.shape[1]))
    parts = [counts.view(np.uint8), *(steps.reshape(-1) for steps, _ in patches), *(bytes_ for _, bytes_ in patches)]
    first = patches[0][0].size + patches[0][1].size
    return np.concatenate([*parts, np.zeros(PADDING, np.uint8)]), first


def _patch(old: Bytes, new: Bytes) -> tuple[Bytes, Bytes]:
    """The steps from one frame to another, shape ``(n, 2)``, and the bytes that they put there."""
    changed = np.flatnonzero(old != new)
    if not len(changed):
        return np.empty((0, 2), np.uint8), np.empty(0, np.uint8)
    breaks = np.flatnonzero(np.diff(changed) > MAX_GAP + 1)
    begins = changed[np.concatenate([[0], breaks + 1])]
    ends = changed[np.concatenate([breaks, [-1]])] + 1
    skips, sizes = begins - np.concatenate([[0], ends[:-1]]), ends - begins
    bytes_ = new[spread(begins, sizes)]
    # What is too long for one step takes several: first those that only skip, then those that only put.
    leaps, pieces = np.maximum(skips - 1, 0) // MAX_STEP, (sizes - 1) // MAX_STEP
    count = leaps + 1 + pieces
    steps = np.zeros((int(count.sum()), 2), np.uint8)
    main = np.cumsum(count) - 1 - pieces
    steps[spread(main - leaps, leaps), 0] = MAX_STEP
    steps[main, 0] = skips - leaps * MAX_STEP
    steps[main, 1] = np.minimum(sizes, MAX_STEP)
    steps[spread(main + 1, pieces), 1] = MAX_STEP
    long = pieces > 0
    steps[(main + pieces)[long], 1] = (sizes - pieces * MAX_STEP)[long]
    return steps, bytes_


def spread(begins: Indices, sizes: Indices) -> Indices:
    """All numbers of ranges that begin here and have these sizes, range by range."""
    total = int(sizes.sum())
    return np.repeat(begins - (np.cumsum(sizes) - sizes), sizes) + np.arange(total)


class Parsed:
    """Chunks taken apart for many at once: where every byte of every patch goes.

    :param chunks: the bytes of each chunk, as :func:`pack` made them
    :param frames: how many frames each of them has
    :param upto: how many of these are wanted, from the first
    :param frame_nbytes: size of a frame
    """

    def __init__(self, chunks: list[Bytes], frames: int, upto: NDArray[np.int64], frame_nbytes: int) -> None:
        dtype = count_dtype(frame_nbytes)
        table = frames * dtype.itemsize
        sizes = np.array([len(chunk) for chunk in chunks])
        if (sizes < table + PADDING).any():
            raise _damaged(sizes, sizes < table + PADDING)
        counts = np.array([chunk[:table].view(dtype) for chunk in chunks]).astype(np.int64).reshape(-1, frames)
        total = counts.sum(axis=1)
        data = np.concatenate(chunks)
        origins = np.cumsum(sizes) - sizes
        wanted = np.arange(frames) < upto[:, np.newaxis]
        counts = np.where(wanted, counts, 0)
        if (table + 2 * total + PADDING > sizes).any():
            raise _damaged(sizes, table + 2 * total + PADDING > sizes)
        steps = data[spread(origins + table, 2 * counts.sum(axis=1))].reshape(-1, 2).astype(np.int64)
        owner = np.repeat(np.arange(counts.size), counts.reshape(-1))
        ways = np.cumsum(steps.sum(axis=1))
        # Positions count from the beginning of each patch: subtract what came before it.
        first = np.cumsum(counts.reshape(-1)) - counts.reshape(-1)
        before = np.concatenate([[0], ways])[first]
        ends = ways - before[owner]
        puts = np.bincount(owner, steps[:, 1], counts.size).astype(np.int64).reshape(-1, frames)
        bad = (puts.sum(axis=1) + table + 2 * total + PADDING > sizes) | np.isin(
            np.arange(len(chunks)), owner[ends > frame_nbytes] // frames
        )
        if bad.any():
            raise _damaged(sizes, bad)
        source = spread(origins + table + 2 * total, puts.sum(axis=1))
        #: For each byte: its place in its frame, in the order of chunks and patches.
        self.places = spread(ends - steps[:, 1], steps[:, 1])
        self.values = data[source]
        #: How many bytes each patch puts, shape ``(chunks, frames)``.
        self.puts = puts


def _damaged(sizes: NDArray[Any], bad: NDArray[np.bool_]) -> PayloadError:
    return PayloadError("frames", int(sizes[bad.argmax()]), "its patches reach beyond their frame, or beyond its end")
