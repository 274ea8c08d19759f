"""Frame kernels in numpy: the reference for all others, and the fallback where nothing is compiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sb3_extra_buffers.frames.batch_memory import BatchMemory
from sb3_extra_buffers.frames.kernels import Chunks, ChunkSource, KernelsPlugin, create
from sb3_extra_buffers.frames.packing import Parsed, patch
from sb3_extra_buffers.frames.streams import BLANK, MAX_BACK, NONE, PATTERNS, ZERO, Change, Streams, apply_changes
from sb3_extra_buffers.memory import Bytes, Indices
from sb3_extra_buffers.registry import hookimpl

#: The name of the reference implementation: always installed, and the slowest.
REFERENCE = "numpy"
#: Arrays of a batch's size that are in use at one time.
_BLOCKS = 4
#: The position of a frame of zeros, which is not stored.
_NOWHERE = -1
#: The row of a frame that is not among those of the last observation.
_NO_ROW = -1


class Lookup(NamedTuple):
    """The frames of a batch. The target of a frame is ``row * depth + index``: row of the batch, index in the stack.

    ``slots`` are the chunks that are needed, each once. Each frame has the index of its chunk in them (``which``), its
    offset in the chunk and its target. Frames of zeros only have a target, in ``blank``.
    """

    slots: Indices
    which: Indices
    offsets: Indices
    targets: Indices
    blank: Indices


def find_frames(streams: Streams, references: Indices) -> Lookup:
    """Find all frames of observations."""
    return _look_up(streams, _frame_positions(streams, references))


def _frame_positions(streams: Streams, references: Indices) -> Indices:
    """The position of each frame of observations, shape ``(n, depth)``; :data:`_NOWHERE` for a frame of zeros."""
    newest = streams.newest[references]
    backs = streams.backs[streams.pattern[references]].astype(np.int64)
    rows, columns = np.nonzero((backs != ZERO) & (newest > 0)[:, np.newaxis])
    slots, offsets = np.divmod(newest[rows].astype(np.int64) - 1, streams.room)
    offsets -= backs[rows, columns]
    while (early := offsets < 0).any():
        slots[early] = streams.previous[slots[early]]
        offsets[early] += streams.sizes[slots[early]]
    positions = np.full(backs.shape, _NOWHERE, np.int64)
    positions[rows, columns] = slots * streams.room + offsets
    return positions


def _look_up(streams: Streams, positions: Indices) -> Lookup:
    """The frames at these positions, with a target for each."""
    is_stored = positions.reshape(-1) != _NOWHERE
    slots, offsets = np.divmod(positions.reshape(-1)[is_stored], streams.room)
    wanted, which = np.unique(slots, return_inverse=True)
    return Lookup(wanted, which.reshape(-1), offsets, np.flatnonzero(is_stored), np.flatnonzero(~is_stored))


class NumpyKernels:
    """Writes one observation at a time, and reads one frame at a time."""

    name = REFERENCE

    def __init__(self) -> None:
        # Without reuse, the system provides the memory of every batch page by page: half of the time of a batch.
        self._memory = BatchMemory(_BLOCKS)

    @property
    def nbytes_for_batches(self) -> int:
        return self._memory.nbytes

    def write(
        self, streams: Streams, references: Indices, rows: Bytes, begin: int, next_rows: Bytes | None = None, /
    ) -> int:
        count, planes = len(rows), [rows] if next_rows is None else [rows, next_rows]
        for index in range(begin, count * len(planes)):
            plane, row = divmod(index, count)
            reference = int(references[row]) + plane * streams.cells
            stream = reference % streams.streams
            frames = streams.geometry.split(planes[plane][row : row + 1])[0]
            is_complete = streams.sizes[streams.open[stream]] >= streams.chunk
            # New is a frame that is not found, or any if no pattern is left.
            if is_complete and (streams.numbers[0] == PATTERNS or None in _known_places(streams, stream, frames)):
                return index
            _Draft(streams, stream).write(reference, frames)
        return count * len(planes)

    def measure(self, old: Bytes, new: Bytes, /) -> int:
        steps, content = patch(old, new)
        return len(steps) + len(content)

    def read(
        self, streams: Streams, source: ChunkSource, references: Indices, out: Bytes, next_out: Bytes | None = None, /
    ) -> None:
        geometry, outs = streams.geometry, [out] if next_out is None else [out, next_out]
        both = references if next_out is None else np.concatenate([references, references + streams.cells])
        # Contiguous frames are decoded in place, interleaved ones beside it.
        rooms = outs if geometry.pixels == 1 else [np.empty_like(rows) for rows in outs]
        _read_frames(streams, source, find_frames(streams, both), rooms, self._memory)
        if geometry.pixels != 1:
            for rows, room in zip(outs, rooms):
                geometry.join(room.reshape(-1, geometry.depth, geometry.frame_nbytes), rows)

    def read_overlapping(self, streams: Streams, source: ChunkSource, references: Indices, out: Bytes, /) -> bool:
        before = _frame_positions(streams, references)
        after = _frame_positions(streams, references + streams.cells)
        if not np.array_equal(before[:, 1:], after[:, :-1]):
            return False
        found = _look_up(streams, np.concatenate([before, after[:, -1:]], axis=1))
        _read_frames(streams, source, found, [out], self._memory)
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        return create, ()  # the kernels that are installed where it is loaded


def _read_frames(
    streams: Streams, source: ChunkSource, found: Lookup, rooms: Sequence[Bytes], memory: BatchMemory
) -> None:
    """Write frames to their targets in C-contiguous arrays, each for an equal part of them."""
    nbytes = streams.geometry.frame_nbytes
    targets = [frame for room in rooms for frame in room.reshape(-1, nbytes)]
    for number in found.blank.tolist():
        targets[number].fill(0)
    if not len(found.slots):
        return
    upto = np.zeros(len(found.slots), np.int64)
    np.maximum.at(upto, found.which, found.offsets + 1)
    chunks = _load(streams, source, found.slots)
    parsed = Parsed(chunks.packed, streams.sizes[found.slots].astype(np.int64), upto, nbytes, memory)
    order = np.lexsort((found.offsets, found.which))
    wanted = zip(*(part[order].tolist() for part in (found.which, found.offsets, found.targets)))
    # Each frame is decoded in its target, starting from a copy of the frame before it.
    last, done, frame = -1, 0, chunks.bases[0]
    for chunk, offset, number in wanted:
        if chunk != last:
            last, done, frame = chunk, 0, chunks.bases[chunk]
        target = targets[number]
        target[:] = frame
        if offset >= done:
            parsed.apply(target, chunk, done, offset + 1)
            done = offset + 1
        frame = target


def _load(streams: Streams, source: ChunkSource, slots: Indices) -> Chunks:
    """The chunks in these slots, complete or open."""
    numbers, filling = slots.tolist(), streams.filling
    opened = dict(zip(streams.open.tolist(), range(streams.streams)))
    closed = [slot for slot in numbers if slot not in opened]
    complete = source.load(closed)
    found = dict(zip(closed, zip(complete.packed, complete.bases)))
    for slot in opened.keys() & numbers:
        found[slot] = filling.packed(opened[slot], streams.sizes.item(slot)), filling.base[opened[slot]]
    return Chunks([found[slot][0] for slot in numbers], [found[slot][1] for slot in numbers])


@dataclass(frozen=True)
class _Place:
    """A frame's number in the stream, its position, and its row among the frames of the last observation."""

    number: int
    position: int
    row: int


#: A frame of zeros, and one that equals the frame before it in the observation.
_BLANK, _REPEATED = _Place(BLANK, 0, _NO_ROW), _Place(NONE, 0, _NO_ROW)


class _Draft:
    """One observation that is being written. All changes are computed first, then published in one call."""

    def __init__(self, streams: Streams, stream: int) -> None:
        self.streams, self.stream = streams, stream
        self._changes: list[Change] = []
        self._slot = streams.open.item(stream)
        self._size, self._total = streams.sizes.item(self._slot), streams.total.item(stream)
        self._filled: list[int] = streams.filling.filled[stream].tolist()
        self._tail = streams.filling.tail[stream]
        #: Users of chunks whose number of users changes, and chunks that have none any more.
        self._users: dict[int, int] = {}
        self._freed: list[int] = []

    def write(self, reference: int, frames: Bytes) -> None:
        """Store an observation, shape ``(depth, frame_nbytes)``, under a reference."""
        streams, stream = self.streams, self.stream
        own = len(streams.newest) - streams.streams + stream
        if _is_last(streams, stream, frames):
            pattern = streams.pattern.item(own)
            self._assign(reference, streams.newest.item(own), pattern, streams.reach.item(pattern))
            self._note_repetition(own)
        else:
            self._write_new(reference, own, frames)
        self._publish()

    def _write_new(self, reference: int, own: int, frames: Bytes) -> None:
        streams, stream = self.streams, self.stream
        places: list[_Place] = []
        # Frames of the last observation stay young enough for the others while frames are appended.
        for frame, known in zip(frames, _known_places(streams, stream, frames)):
            places.append(self._append(frame) if known is None else places[-1] if known is _REPEATED else known)
        rows = [place.row for place in places]
        pattern, reach = self._pattern([place.number for place in places])
        if pattern < 0:  # no room for another pattern: stored as new frames, whose pattern is number 0
            places, pattern, reach = [self._append(frame) for frame in frames], 0, streams.reach.item(0)
        newest = max(places, key=lambda place: place.number)
        position = 0 if newest.number == BLANK else newest.position + 1
        self._assign(reference, position, pattern, reach)
        self._assign(own, position, pattern, reach)
        self._keep(rows, frames)
        self._changes += [
            (streams.repeated, stream, 0),
            (streams.last_number, stream, np.array([place.number for place in places])),
            (streams.last_position, stream, np.array([place.position for place in places])),
        ]

    def _note_repetition(self, own: int) -> None:
        """Store a repeated observation again in time, before a heap evicts the chunks that it reaches into."""
        streams, stream, newest = self.streams, self.stream, self.streams.newest.item(own)
        if not newest:
            return
        slot, offset = divmod(newest - 1, streams.room)
        if slot != self._slot or streams.reach[streams.pattern[own]] > offset:
            repeated = streams.repeated.item(stream) + 1
            if repeated == streams.chunk:
                repeated = 0
                self._changes.append((streams.last_number, stream, NONE))
            self._changes.append((streams.repeated, stream, repeated))

    def _append(self, frame: Bytes) -> _Place:
        filling, stream, (steps, content) = self.streams.filling, self.stream, self._filled
        own_steps, own_content = patch(self._tail, frame)
        # These bytes are after the end of what is filled: they count when that is published.
        filling.counts[stream, self._size] = len(own_steps) // 2
        filling.steps[stream, steps : steps + len(own_steps)] = own_steps
        filling.content[stream, content : content + len(own_content)] = own_content
        if not self._size:
            self._changes.append((filling.first_nbytes, stream, len(own_steps) + len(own_content)))
        place = _Place(self._total, self._slot * self.streams.room + self._size, _NO_ROW)
        self._filled, self._tail = [steps + len(own_steps), content + len(own_content)], frame
        self._size, self._total = self._size + 1, self._total + 1
        return place

    def _keep(self, rows: list[int], frames: Bytes) -> None:
        """Keep the frames of the observation as the last one; most are kept already."""
        last, used = self.streams.last[self.stream], set(rows)
        for index, frame in enumerate(frames):
            if rows[index] == _NO_ROW:
                rows[index] = min(set(range(len(frames))) - used)
                used.add(rows[index])
                self._changes.append((last, rows[index], frame))
        self._changes.append((self.streams.last_row, self.stream, np.array(rows)))

    def _pattern(self, numbers: Sequence[int]) -> tuple[int, int]:
        """The index of a pattern, a new one if necessary, and its reach; -1 if there is no room for it."""
        streams, newest = self.streams, max(numbers)
        if newest == BLANK:
            return 0, streams.reach.item(0)
        backs = np.array([ZERO if number == BLANK else newest - number for number in numbers], np.uint8)
        count = streams.numbers.item(0)
        known = np.flatnonzero((streams.backs[:count] == backs).all(axis=1))
        if len(known):
            return int(known[0]), streams.reach.item(int(known[0]))
        if count == PATTERNS:
            return -1, 0
        reach = int(backs[backs != ZERO].max())
        self._changes += [(streams.backs, count, backs), (streams.reach, count, reach), (streams.numbers, 0, count + 1)]
        return count, reach

    def _assign(self, reference: int, newest: int, pattern: int, reach: int) -> None:
        """Let a reference stand for this observation, and no longer for its old one."""
        streams = self.streams
        self._changes += [(streams.newest, reference, newest), (streams.pattern, reference, pattern)]
        self._count_users(newest, reach, 1)
        self._count_users(streams.newest.item(reference), streams.reach.item(streams.pattern.item(reference)), -1)

    def _count_users(self, newest: int, reach: int, change: int) -> None:
        """Add a user to every chunk that an observation reaches into, or take one away."""
        if not newest:
            return
        streams = self.streams
        slot, offset = divmod(newest - 1, streams.room)
        further = reach - offset
        while True:
            users = self._users[slot] = self._users.get(slot, streams.users.item(slot)) + change
            if change < 0 and not users:
                self._freed.append(slot)
            if further <= 0:
                return
            slot = streams.previous.item(slot)
            further -= streams.sizes.item(slot)

    def _publish(self) -> None:
        streams, stream, filling, free = self.streams, self.stream, self.streams.filling, self.streams.numbers.item(1)
        changes = self._changes
        if self._size != streams.sizes.item(self._slot):
            changes += [
                (streams.sizes, self._slot, self._size),
                (streams.total, stream, self._total),
                (filling.filled, stream, np.array(self._filled)),
                (filling.tail, stream, self._tail),
            ]
        changes += [(streams.users, slot, users) for slot, users in self._users.items()]
        if self._freed:
            changes += [(streams.free, free + number, slot) for number, slot in enumerate(self._freed)]
            changes.append((streams.numbers, 1, free + len(self._freed)))
        apply_changes(changes)


def _known_places(streams: Streams, stream: int, frames: Bytes) -> list[_Place | None]:
    """Places of frames that are blank, in the last observation, or equal to the frame before; ``None`` for others."""
    found: list[_Place | None] = []
    for index, frame in enumerate(frames):
        place = _find(streams, stream, index, frame) if frame.any() else _BLANK
        if place is None and index and found[-1] is not _BLANK and np.array_equal(frame, frames[index - 1]):
            place = _REPEATED
        found.append(place)
    return found


def _is_last(streams: Streams, stream: int, frames: Bytes) -> bool:
    """Whether an observation equals the last one of its stream."""
    if streams.last_number[stream, 0] == NONE:
        return False
    rows, last = streams.last_row[stream].tolist(), streams.last[stream]
    return all(np.array_equal(frame, last[row]) for row, frame in zip(rows, frames))


def _find(streams: Streams, stream: int, index: int, frame: Bytes) -> _Place | None:
    """The place of a frame that is in the stream's last observation."""
    depth, last, rows = streams.geometry.depth, streams.last[stream], streams.last_row[stream].tolist()
    numbers, positions = streams.last_number[stream].tolist(), streams.last_position[stream].tolist()
    oldest = max(int(streams.total[stream]) - MAX_BACK + 2 * depth, 0)
    # First the one that a shift would bring here, then the one at the same index, then any.
    for other in (index + 1, index, *range(depth)):
        if other < depth and numbers[other] >= oldest and np.array_equal(frame, last[rows[other]]):
            return _Place(numbers[other], positions[other], rows[other])
    return None


@hookimpl
def sb3_extra_buffers_frame_kernels() -> KernelsPlugin:
    return KernelsPlugin(protocol=1, factory=NumpyKernels, summary="Frames in numpy: works everywhere")
