"""The bytes of a chunk: frames as patches, each on the frame before it. ``docs/frames.md`` describes the format.

This is the reference, in numpy; compiled kernels write the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import PayloadError
from sb3_extra_buffers.frames.batch_memory import BatchMemory
from sb3_extra_buffers.memory import Bytes, Indices

#: Changed bytes that are at most this far apart go into one step: another step would cost as much.
MAX_GAP = 2
#: The largest size of a step, and its longest skip.
MAX_STEP = 255
#: A step of size 0 skips this many times as many bytes: frames that change in few places need long skips.
LEAP = 256
#: Number of zeros at the end of a chunk, so that eight bytes can be read at any byte of its content.
PADDING = 7
#: These zeros.
END = np.zeros(PADDING, np.uint8)

_INDEX = np.dtype(np.int64)
#: A step: skip in the low byte, size in the high byte.
_STEP = np.dtype("<u2")
#: Keeps no memory: every array is a new one.
_FRESH = BatchMemory(0)


def count_dtype(frame_nbytes: int) -> np.dtype[Any]:
    """The dtype of the number of steps of a patch."""
    # A step covers four bytes or more, except the first one and parts of long ones.
    return np.dtype("<u2") if frame_nbytes <= 1 << 17 else np.dtype("<u4")


def worst_steps_nbytes(frame_nbytes: int) -> int:
    """The largest size of the steps of a patch."""
    return 2 * (frame_nbytes // (2 + MAX_GAP) + frame_nbytes // MAX_STEP + 2)


def worst_nbytes(frames: int, frame_nbytes: int) -> int:
    """The size of a chunk whose frames have nothing in common."""
    return frames * (count_dtype(frame_nbytes).itemsize + worst_steps_nbytes(frame_nbytes) + frame_nbytes) + PADDING


def patch(old: Bytes, new: Bytes) -> tuple[Bytes, Bytes]:
    """The patch from one frame to another: its steps, two bytes each, and its content."""
    changed = np.flatnonzero(old != new)
    if not len(changed):
        return np.empty(0, np.uint8), np.empty(0, np.uint8)
    breaks = np.flatnonzero(np.diff(changed) > MAX_GAP + 1)
    begins = changed[np.concatenate([[0], breaks + 1])]
    ends = changed[np.concatenate([breaks, [-1]])] + 1
    skips, sizes = begins - np.concatenate([[0], ends[:-1]]), ends - begins
    bytes_ = new[spread(begins, sizes)]
    # Long skips and long segments take several steps: first those that only skip, then those that only put.
    far, pieces = skips // LEAP, (sizes - 1) // MAX_STEP
    leaps = -(-far // MAX_STEP)
    count = leaps + 1 + pieces
    steps = np.zeros((int(count.sum()), 2), np.uint8)
    main = np.cumsum(count) - 1 - pieces
    steps[spread(main - leaps, leaps), 0] = MAX_STEP
    is_far = far > 0
    steps[(main - 1)[is_far], 0] = (far - (leaps - 1) * MAX_STEP)[is_far]
    steps[main, 0] = skips % LEAP
    steps[main, 1] = np.minimum(sizes, MAX_STEP)
    steps[spread(main + 1, pieces), 1] = MAX_STEP
    long = pieces > 0
    steps[(main + pieces)[long], 1] = (sizes - pieces * MAX_STEP)[long]
    return steps.reshape(-1), bytes_


def spread(begins: Indices, sizes: Indices) -> Indices:
    """The concatenation of ranges with these beginnings and sizes."""
    if not sizes.all():
        begins, sizes = begins[sizes > 0], sizes[sizes > 0]
    ends = np.cumsum(sizes)
    if not len(ends):
        return np.empty(0, np.int64)
    # A cumulative sum takes half the time of numpy.repeat() where ranges are short.
    steps = np.ones(int(ends[-1]), np.int64)
    steps[0] = begins[0]
    steps[ends[:-1]] = begins[1:] - begins[:-1] - sizes[:-1] + 1
    return np.cumsum(steps, out=steps)


class Parsed:
    """Several chunks parsed at once: the target of every byte of every patch.

    Each chunk has so many ``frames``; those before ``upto`` are wanted.
    """

    def __init__(
        self, chunks: Sequence[Bytes], frames: Indices, upto: Indices, frame_nbytes: int, memory: BatchMemory = _FRESH
    ) -> None:
        dtype, most = count_dtype(frame_nbytes), int(frames.max())
        sizes, tables = np.array([len(chunk) for chunk in chunks]), frames * dtype.itemsize
        _check(sizes, sizes < tables + PADDING)
        views = [memoryview(chunk) for chunk in chunks]
        number = np.arange(most)
        counts = np.zeros((len(chunks), most), np.int64)
        heads = zip(views, repeat(0), tables.tolist())
        counts[number < frames[:, np.newaxis]] = _joined(heads, dtype)
        # The content of each chunk begins after the steps of all its frames, wanted or not.
        contents = tables + 2 * counts.sum(axis=1)
        _check(sizes, contents + PADDING > sizes)
        counts[number >= upto[:, np.newaxis]] = 0
        own = zip(views, tables.tolist(), (tables + 2 * counts.sum(axis=1)).tolist())
        steps = _joined(own, _STEP)
        # Sums over the steps of all patches: the distance they go, and the bytes they put.
        skips, puts = steps & MAX_STEP, steps >> 8
        skips[puts == 0] *= LEAP
        ways, bytes_ = _sums(skips + puts, memory), _sums(puts, memory)
        edges = _sums(counts.reshape(-1), memory)
        way_at, byte_at = ways[edges], bytes_[edges]
        reaches = np.diff(way_at).reshape(counts.shape).max(axis=1)
        _check(sizes, (reaches > frame_nbytes) | (contents + np.diff(byte_at[::most]) + PADDING > sizes))
        # The next byte goes one place further, or a skip further where a step begins. The skip of a step of size 0 is
        # added to that of the next step; there is one extra entry for the last step of all.
        places = memory.empty((int(byte_at[-1]) + 1,), _INDEX)
        places.fill(1)
        np.add.at(places, bytes_[:-1], skips.astype(np.int64))
        # Every patch begins at the first byte of its frame.
        patches = np.flatnonzero(np.diff(byte_at))
        places[byte_at[patches]] -= np.diff(way_at[patches], prepend=-1)
        self._places = np.cumsum(places, out=places)
        self._chunks, self._most = chunks, most
        #: The index of the first byte of each patch, chunk by chunk, and its offset in the chunk minus that index.
        self._byte_at = byte_at.tolist()
        self._ahead = (contents - byte_at[:-1:most]).tolist()

    def apply(self, frame: Bytes, chunk: int, begin: int, end: int) -> None:
        """Turn frame ``begin - 1`` of a chunk, or its reference frame, into frame ``end - 1``, in place."""
        patch = chunk * self._most
        first, last, ahead = self._byte_at[patch + begin], self._byte_at[patch + end], self._ahead[chunk]
        # If several patches change a byte, the last one counts: numpy assigns in order.
        frame[self._places[first:last]] = self._chunks[chunk][ahead + first : ahead + last]


def _sums(numbers: NDArray[Any], memory: BatchMemory) -> Indices:
    """Cumulative sums, beginning with 0."""
    sums = memory.empty((len(numbers) + 1,), _INDEX)
    sums[0] = 0
    np.cumsum(numbers, dtype=_INDEX, out=sums[1:])
    return sums


def _joined(pieces: Iterable[tuple[memoryview, int, int]], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The concatenation of pieces of bytes. Hundreds of small arrays would take ten times as long."""
    return np.frombuffer(b"".join([view[begin:end] for view, begin, end in pieces]), dtype)


def _check(sizes: NDArray[Any], bad: NDArray[np.bool_]) -> None:
    if bad.any():
        problem = "its patches reach beyond their frame, or beyond its end"
        raise PayloadError("frames", int(sizes[bad.argmax()]), problem)
