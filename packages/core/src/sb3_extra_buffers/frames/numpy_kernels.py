"""The hot paths in numpy: the reference, and what works where nothing is compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sb3_extra_buffers.frames.kernels import ChunkSource, KernelsPlugin
from sb3_extra_buffers.frames.packing import Parsed, pack, spread
from sb3_extra_buffers.frames.streams import BLANK, MAX_BACK, NONE, PATTERNS, ZERO, Streams
from sb3_extra_buffers.registry import hookimpl
from sb3_extra_buffers.views import Bytes, Indices


class NumpyKernels:
    """A loop over observations where they are written, and over the frames of a chunk where they are read."""

    name = "numpy"

    def write(
        self, streams: Streams, references: Indices, rows: Bytes, begin: int, following: Bytes | None = None, /
    ) -> int:
        if following is not None:
            references = np.concatenate([references, references + streams.cells])
            rows = np.concatenate([rows, following])
        frames = streams.geometry.split(rows[begin:])
        for index, reference in enumerate(references.tolist()[begin:]):
            stream = reference % streams.streams
            if streams.staged_count[stream] >= streams.chunk:
                return begin + index
            self._write(streams, stream, reference, frames[index])
        return len(references)

    def pack(self, frames: Bytes, base: Bytes, /) -> tuple[Bytes, int]:
        return pack(frames, base)

    def read(
        self, streams: Streams, source: ChunkSource, references: Indices, out: Bytes, following: Bytes | None = None, /
    ) -> None:
        both = references if following is None else np.concatenate([references, references + streams.cells])
        frames = np.zeros((len(both), streams.geometry.depth, streams.geometry.frame_nbytes), np.uint8)
        self._read(streams, source, both, frames)
        streams.geometry.join(frames[: len(references)], out)
        if following is not None:
            streams.geometry.join(frames[len(references) :], following)

    def __reduce__(self) -> tuple[Any, ...]:
        from sb3_extra_buffers.frames.creation import create

        return create, ()  # whatever is installed where it is loaded

    # Writing.

    def _write(self, streams: Streams, stream: int, reference: int, frames: Bytes) -> None:
        own = len(streams.newest) - streams.streams + stream
        if streams.last_number[stream, 0] != NONE and np.array_equal(frames, streams.last[stream]):
            _assign(streams, reference, int(streams.newest[own]), int(streams.pattern[own]))
            return
        numbers, positions = self._numbers(streams, stream, frames)
        pattern = self._pattern(streams, numbers)
        if pattern < 0:  # no room for another pattern: as new frames, there is always one for it
            appended = [self._append(streams, stream, frame) for frame in frames]
            numbers, positions, pattern = [number for number, _ in appended], [place for _, place in appended], 0
        newest = max(numbers)
        position = 0 if newest == BLANK else positions[numbers.index(newest)] + 1
        _assign(streams, reference, position, pattern)
        _assign(streams, own, position, pattern)
        streams.last[stream] = frames
        streams.last_number[stream], streams.last_position[stream] = numbers, positions

    def _numbers(self, streams: Streams, stream: int, frames: Bytes) -> tuple[list[int], list[int]]:
        """The number and position of each frame: of one that is there already, or of a new one."""
        depth, last = len(frames), streams.last[stream]
        numbers, positions = streams.last_number[stream].tolist(), streams.last_position[stream].tolist()
        oldest = int(streams.total[stream]) - MAX_BACK + 2 * depth
        found: list[tuple[int, int]] = []
        for index, frame in enumerate(frames):
            if not frame.any():
                found.append((BLANK, 0))
                continue
            for other in (index + 1, index, *range(depth)):
                if other < depth and numbers[other] >= max(oldest, 0) and np.array_equal(frame, last[other]):
                    found.append((numbers[other], positions[other]))
                    break
            else:
                if index and found[-1][0] != BLANK and np.array_equal(frame, frames[index - 1]):
                    found.append(found[-1])
                else:
                    found.append(self._append(streams, stream, frame))
        return [number for number, _ in found], [position for _, position in found]

    def _append(self, streams: Streams, stream: int, frame: Bytes) -> tuple[int, int]:
        place, number = int(streams.staged_count[stream]), int(streams.total[stream])
        streams.staged[stream, place] = frame
        streams.staged_count[stream] += 1
        streams.total[stream] += 1
        slot = int(streams.open[stream, place // streams.chunk])
        return number, slot * streams.chunk + place % streams.chunk

    def _pattern(self, streams: Streams, numbers: Sequence[int]) -> int:
        newest = max(numbers)
        if newest == BLANK:
            return 0
        backs = np.array([ZERO if number == BLANK else newest - number for number in numbers], np.uint8)
        count = int(streams.numbers[0])
        known = np.flatnonzero((streams.backs[:count] == backs).all(axis=1))
        if len(known):
            return int(known[0])
        if count == PATTERNS:
            return -1
        streams.backs[count] = backs
        streams.reach[count] = backs[backs != ZERO].max()
        streams.numbers[0] += 1
        return count

    # Reading.

    def _read(self, streams: Streams, source: ChunkSource, references: Indices, frames: Bytes) -> None:
        chunk, newest = streams.chunk, streams.newest[references].astype(np.int64)
        backs = streams.backs[streams.pattern[references]].astype(np.int64)
        stored = (backs != ZERO) & (newest > 0)[:, np.newaxis]
        rows, places = np.nonzero(stored)
        positions = newest[rows] - 1
        slots, offsets = positions // chunk, positions % chunk - backs[rows, places]
        while (early := offsets < 0).any():
            slots[early] = streams.previous[slots[early]]
            offsets[early] += chunk
        opened = streams.open[references[rows] % streams.streams].astype(np.int64)
        is_open = slots[:, np.newaxis] == opened
        staged, complete = is_open.any(axis=1), ~is_open.any(axis=1)
        where = offsets[staged] + chunk * is_open[staged].argmax(axis=1)
        frames[rows[staged], places[staged]] = streams.staged[references[rows[staged]] % streams.streams, where]
        if complete.any():
            targets = rows[complete] * frames.shape[1] + places[complete]
            _unpack(streams, source, slots[complete], offsets[complete], frames.reshape(-1, frames.shape[2]), targets)


def _assign(streams: Streams, reference: int, newest: int, pattern: int) -> None:
    """Let a reference stand for an observation, and no longer for what it stood for."""
    before = int(streams.newest[reference]), int(streams.pattern[reference])
    streams.newest[reference], streams.pattern[reference] = newest, pattern
    _count_users(streams, newest, pattern, 1)
    _count_users(streams, *before, -1)


def _count_users(streams: Streams, newest: int, pattern: int, change: int) -> None:
    """Add a user to every chunk that an observation reaches into, or take one away."""
    if not newest:
        return
    slot, offset = divmod(newest - 1, streams.chunk)
    further = int(streams.reach[pattern]) - offset
    while True:
        before = int(streams.previous[slot])
        if change > 0:
            streams.users[slot] += 1
        else:
            streams.leave(slot)
        if further <= 0:
            return
        slot, further = before, further - streams.chunk


def _unpack(
    streams: Streams, source: ChunkSource, slots: Indices, offsets: Indices, frames: Bytes, targets: Indices
) -> None:
    """Write the frames at these offsets of these chunks to their rows of ``frames``, all chunks side by side."""
    wanted, which = np.unique(slots, return_inverse=True)
    upto = np.zeros(len(wanted), np.int64)
    np.maximum.at(upto, which, offsets + 1)
    chunks = source.load(wanted.tolist())
    parsed = Parsed(list(chunks.packed), streams.chunk, upto, frames.shape[1])
    current = np.array(chunks.bases)
    puts = parsed.puts
    begins = np.cumsum(puts).reshape(puts.shape) - puts
    places = parsed.places + np.repeat(np.arange(len(wanted)) * frames.shape[1], puts.sum(axis=1))
    # By frame, then by chunk: the first frames of all chunks, then the second ones, and so on.
    order = spread(begins.T.reshape(-1), puts.T.reshape(-1))
    places, values = places[order], parsed.values[order]
    ends = np.cumsum(puts.sum(axis=0))
    by_offset = np.argsort(offsets, kind="stable")
    edges = np.searchsorted(offsets[by_offset], np.arange(int(upto.max()) + 1))
    begin = 0
    for offset in range(int(upto.max())):
        current.reshape(-1)[places[begin : ends[offset]]] = values[begin : ends[offset]]
        begin = ends[offset]
        due = by_offset[edges[offset] : edges[offset + 1]]
        if len(due):
            frames[targets[due]] = current[which[due]]


@hookimpl
def sb3_extra_buffers_frame_kernels() -> KernelsPlugin:
    return KernelsPlugin(protocol=1, factory=NumpyKernels, summary="Frames in numpy: works everywhere")
