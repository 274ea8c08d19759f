"""The bytes of a chunk: frames as patches, each on the frame before it. ``docs/frames.md`` describes them.

This is the reference, in numpy; compiled kernels make the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
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
#: The same as bytes.
END = np.zeros(PADDING, np.uint8)


def count_dtype(frame_nbytes: int) -> np.dtype[Any]:
    """What the number of steps of a patch is written as."""
    # A step covers four bytes or more, except for the first and where long ones are cut.
    return np.dtype("<u2") if frame_nbytes <= 1 << 17 else np.dtype("<u4")


def worst_steps_nbytes(frame_nbytes: int) -> int:
    """What the steps of a patch take at the most."""
    return 2 * (frame_nbytes // (2 + MAX_GAP) + frame_nbytes // MAX_STEP + 2)


def worst_nbytes(frames: int, frame_nbytes: int) -> int:
    """What a chunk takes if no frame has anything in common with the one before it."""
    return frames * (count_dtype(frame_nbytes).itemsize + worst_steps_nbytes(frame_nbytes) + frame_nbytes) + PADDING


def patch(old: Bytes, new: Bytes) -> tuple[Bytes, Bytes]:
    """The steps from one frame to another, two bytes each, and the bytes that they put there.

    :param old: a frame
    :param new: the one that shall be made of it
    """
    changed = np.flatnonzero(old != new)
    if not len(changed):
        return np.empty(0, np.uint8), np.empty(0, np.uint8)
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
    return steps.reshape(-1), bytes_


def spread(begins: Indices, sizes: Indices) -> Indices:
    """All numbers of ranges that begin here and have these sizes, range by range."""
    if not sizes.all():
        begins, sizes = begins[sizes > 0], sizes[sizes > 0]
    ends = np.cumsum(sizes)
    if not len(ends):
        return np.empty(0, np.int64)
    # Steps of one, and longer ones from range to range: half the time of numpy.repeat() where ranges are short.
    steps = np.ones(int(ends[-1]), np.int64)
    steps[0] = begins[0]
    steps[ends[:-1]] = begins[1:] - begins[:-1] - sizes[:-1] + 1
    return np.cumsum(steps, out=steps)


class Parsed:
    """Chunks taken apart, many at once: where every byte of every patch goes.

    Patches come frame by frame: those of the first frames of all chunks, then those of the second ones, and so on.

    :param chunks: the bytes of each chunk
    :param frames: how many frames each of them has
    :param upto: how many of these are wanted, from the first
    :param frame_nbytes: size of a frame
    """

    def __init__(self, chunks: Sequence[Bytes], frames: Indices, upto: Indices, frame_nbytes: int) -> None:
        dtype, most = count_dtype(frame_nbytes), int(frames.max())
        sizes, tables = np.array([len(chunk) for chunk in chunks]), frames * dtype.itemsize
        _check(sizes, sizes < tables + PADDING)
        counts = np.zeros((len(chunks), most), np.int64)
        for row, chunk, count, table in zip(counts, chunks, frames.tolist(), tables.tolist()):
            row[:count] = chunk[:table].view(dtype)
        # Where the content of each chunk begins: behind the steps of all its frames, also of those not wanted.
        contents = tables + 2 * counts.sum(axis=1)
        _check(sizes, contents + PADDING > sizes)
        counts[np.arange(most) >= upto[:, np.newaxis]] = 0
        data = np.concatenate(chunks)
        origins = np.cumsum(sizes) - sizes
        # The steps, chunk by chunk: how far each goes, counted from the beginning of its patch, and what it puts.
        per_chunk, per_patch = counts.sum(axis=1), counts.reshape(-1)
        own = [
            chunk[table : table + 2 * count] for chunk, table, count in zip(chunks, tables.tolist(), per_chunk.tolist())
        ]
        steps = np.concatenate(own).reshape(-1, 2).astype(np.int64)
        puts, begins = steps[:, 1], np.cumsum(per_patch) - per_patch
        ways, put = np.cumsum(steps[:, 0] + puts), np.cumsum(puts)
        ends = ways - np.repeat(np.concatenate([[0], ways])[begins], per_patch)
        totals = np.concatenate([[0], put])[np.append(begins, len(steps))]
        chunk_of = np.repeat(np.arange(len(chunks)), per_chunk)
        self._check_ends(sizes, contents, chunk_of[ends > frame_nbytes], totals[::most])
        # The same frame by frame: steps are few, so these are put in order and not the bytes.
        order = spread(begins.reshape(counts.shape).T.reshape(-1), counts.T.reshape(-1))
        targets = chunk_of * frame_nbytes + ends - puts
        sources = put - puts + (origins + contents - totals[:-1:most])[chunk_of]
        puts = puts[order]
        #: For each byte: its place among all frames, one per chunk.
        self.places = spread(targets[order], puts)
        self.values = data[spread(sources[order], puts)]
        #: Where the bytes of each frame end.
        self.ends = np.cumsum(np.diff(totals).reshape(counts.shape).sum(axis=0))

    @staticmethod
    def _check_ends(sizes: Indices, contents: Indices, beyond: Indices, totals: Indices) -> None:
        bad = contents + np.diff(totals) + PADDING > sizes
        bad[beyond] = True
        _check(sizes, bad)


def _check(sizes: NDArray[Any], bad: NDArray[np.bool_]) -> None:
    if bad.any():
        problem = "its patches reach beyond their frame, or beyond its end"
        raise PayloadError("frames", int(sizes[bad.argmax()]), problem)
