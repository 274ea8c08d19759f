"""Streams of frames: which frames every observation is made of, and the chunk that each stream is filling."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import starmap
from operator import setitem
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.frames.geometry import FrameGeometry
from sb3_extra_buffers.frames.packing import END, PADDING, count_dtype, worst_steps_nbytes
from sb3_extra_buffers.heaps.state import State, StateError, used, within
from sb3_extra_buffers.memory import Bytes, untouched

# The constants are part of the contract of kernels: compiled kernels have them built in. A change needs a new protocol.

#: How far back, in frames of its stream, an observation may reach. Older frames are stored again. At least four stacks.
MAX_BACK = 120
#: In a pattern: a frame of zeros, which is never stored. Stacks begin with them.
ZERO = 255
#: Numbers of frames that are not in the stream: a frame of zeros, and no frame at all.
BLANK, NONE = -1, -2
#: The largest number of patterns.
PATTERNS = 255

#: Arrays with an entry for each slot, most of which are never used.
_BY_SLOT = ("previous", "sizes", "users", "free")
#: Arrays that are saved as a whole.
_WHOLE = ("backs", "reach", "last", "last_row", "last_number", "last_position", "repeated", "total", "open", "numbers")
_FILLING = ("counts", "filled", "first_nbytes", "base", "tail")
#: Loaded observations that are checked together: their numbers fit into the cache of one CPU core.
_BATCH = 1 << 15
#: Number of available frames of an observation that was never written: enough for any pattern.
_ANYTHING = 255

#: An assignment ``target[key] = value``. The target is an array, a list or a dict.
Change = tuple[Any, Any, Any]


def apply_changes(changes: Sequence[Change]) -> None:
    """Carry out assignments in one call of C code, which no interrupt can split: see ``publish`` of the memory package.

    The changes are a sequence, because a generator would run Python code in between. Their keys and values are numbers,
    slices and arrays: numpy runs signal handlers while it makes an array of a list or a tuple.
    """
    deque(starmap(setitem, changes), maxlen=0)


class OpenChunks:
    """The chunk that each stream is filling. Its parts are separate arrays, because each of them grows.

    The arrays are large enough for the worst case; pages that are never used take no memory.
    """

    def __init__(self, streams: int, frames: int, frame_nbytes: int) -> None:
        #: Number of steps of each patch.
        self.counts: NDArray[Any] = np.zeros((streams, frames), count_dtype(frame_nbytes))
        self.steps = untouched((streams, frames * worst_steps_nbytes(frame_nbytes)))
        self.content = untouched((streams, frames * frame_nbytes + PADDING))
        #: Bytes written so far: of the steps, of the content.
        self.filled = np.zeros((streams, 2), np.int64)
        #: Bytes of the first patch, steps and content together.
        self.first_nbytes = np.zeros(streams, np.int64)
        #: The reference frame: the first patch is made on it.
        self.base = np.zeros((streams, frame_nbytes), np.uint8)
        #: The next patch is made on this: the newest frame, or the reference frame.
        self.tail = np.zeros((streams, frame_nbytes), np.uint8)

    @property
    def nbytes(self) -> int:
        """Memory in use besides patches."""
        return self.counts.nbytes + self.filled.nbytes + self.base.nbytes + self.tail.nbytes

    @property
    def packed_nbytes(self) -> int:
        return int(self.filled.sum())

    def beginning(self, stream: int, base: Bytes) -> list[Change]:
        """The changes that begin an empty chunk on a reference frame."""
        return [(self.filled, stream, 0), (self.base, stream, base), (self.tail, stream, base)]

    def begin(self, stream: int, base: Bytes) -> None:
        """Begin an empty chunk on a reference frame."""
        apply_changes(self.beginning(stream, base))

    def parts(self, stream: int, frames: int) -> list[Bytes]:
        """The bytes of a chunk with ``frames`` frames, in pieces that are valid until the next chunk is begun."""
        steps, content = self.filled[stream].tolist()
        counts = self.counts[stream, :frames].view(np.uint8)
        return [counts, self.steps[stream, :steps], self.content[stream, :content], END]

    def packed(self, stream: int, frames: int) -> Bytes:
        """The bytes of a chunk with ``frames`` frames, in one piece."""
        return np.concatenate(self.parts(stream, frames))

    def state(self) -> State:
        arrays = {name: getattr(self, name) for name in _FILLING}
        steps, content = self.filled.max(axis=0).tolist()
        return State({}, {**arrays, "steps": self.steps[:, :steps], "content": self.content[:, :content]})

    def restore(self, state: State) -> None:
        state.copy_to(**{name: getattr(self, name) for name in _FILLING})
        within("filled", self.filled, 0, self.content.shape[1] - PADDING)
        for number, target in enumerate((self.steps, self.content)):
            part = state.array(("steps", "content")[number], np.uint8, len(target), None)
            if part.shape[1] > target.shape[1] or self.filled[:, number].max() > part.shape[1]:
                raise StateError("open chunks claim more bytes than there are")
            target[:, : part.shape[1]] = part


class Streams:
    """The frames of each environment in the order in which they came, cut into chunks. It holds no complete chunk.

    An observation is a reference: the position of its newest frame, and a *pattern* that says for each of its frames
    how many frames further back it is. A position is ``slot * room + offset``; the slot is the number of a chunk, and
    ``previous`` gives the slot of the chunk before it. A chunk lives as long as a reference reaches into it.

    The chunk that a stream is filling is in ``filling`` until it is complete. The last observation of each stream is
    kept as well: every new one is compared with it, frame by frame, and only frames that are not found are stored. It
    has a reference of its own, after those of the observations, because its cell may be overwritten first.

    All arrays are part of the contract of kernels, which read and write them.

    :param geometry: how frames lie in an observation
    :param chunk: frames of a complete chunk, at least two observations' worth; its last observation may add more
    :param streams: number of streams; observation ``i`` belongs to stream ``i % streams``
    :param cells: number of observations; next observations have the numbers from ``cells`` on
    :param slots: the largest number of chunks at one time
    :param planes: 1 for observations only, 2 for observations and next observations
    """

    def __init__(
        self, geometry: FrameGeometry, chunk: int, streams: int, cells: int, slots: int, planes: int = 1
    ) -> None:
        self.geometry, self.chunk, self.cells, self.planes = geometry, chunk, cells, planes
        #: The largest number of frames in a chunk: an observation that finds no pattern is stored twice.
        self.room = chunk - 1 + 2 * geometry.depth
        references, depth, frame_nbytes = planes * cells, geometry.depth, geometry.frame_nbytes
        # The arrays are large enough for the worst case; pages that are never used take no memory.
        #: Position of each observation's newest stored frame, plus 1; 0 for an observation that was never written.
        self.newest = untouched(references + streams, np.int32)
        self.pattern = untouched(references + streams, np.uint8)
        #: How far back each frame of an observation is, by pattern.
        self.backs = np.zeros((PATTERNS, depth), np.uint8)
        self.backs[0] = np.arange(depth)[::-1]
        #: How far back the oldest frame of an observation is, by pattern.
        self.reach = np.zeros(PATTERNS, np.uint8)
        self.reach[0] = depth - 1
        #: The last observation of each stream: its distinct frames in any order; then for each of its frames the row in
        #: ``last``, its number in the stream, and its position.
        self.last = np.zeros((streams, depth, frame_nbytes), np.uint8)
        self.last_row = np.zeros((streams, depth), np.int64)
        self.last_number = np.full((streams, depth), NONE, np.int64)
        self.last_position = np.zeros((streams, depth), np.int32)
        #: How often the last observation of each stream was repeated while it reached into a complete chunk.
        self.repeated = np.zeros(streams, np.int64)
        #: Number of frames that each stream has had.
        self.total = np.zeros(streams, np.int64)
        #: The slot of the chunk that each stream is filling.
        self.open = np.arange(streams, dtype=np.int32)
        #: The content of these chunks.
        self.filling = OpenChunks(streams, self.room, frame_nbytes)
        self.previous = untouched(slots, np.int32)
        #: Number of frames in each chunk.
        self.sizes = untouched(slots, np.int32)
        #: Number of observations that reach into each chunk; an open chunk counts one more.
        self.users = untouched(slots, np.int32)
        self.users[:streams] = 1
        #: A stack of slots that were used and are free again.
        self.free = untouched(slots, np.int32)
        #: Number of patterns, of free slots, of slots that were ever used.
        self.numbers = np.array([1, 0, streams], np.int64)
        #: For the kernels' own use, such as addresses. It is not pickled and not saved.
        self.workspace: object = None

    @property
    def streams(self) -> int:
        return len(self.total)

    @property
    def slots(self) -> int:
        return len(self.users)

    @property
    def free_slots(self) -> int:
        _, free, used = self.numbers.tolist()
        return int(free + self.slots - used)

    @property
    def next_slot(self) -> int:
        """The slot of the chunk that is begun next. There must be a free one."""
        _, free, used = self.numbers.tolist()
        return int(self.free.item(free - 1)) if free else int(used)

    @property
    def nbytes(self) -> int:
        """Memory in use besides patches."""
        used = int(self.numbers[2])
        per_slot = sum(array.itemsize for array in (self.previous, self.sizes, self.users, self.free))
        fixed = (self.newest, self.pattern, self.last, self.last_row, self.last_number, self.last_position)
        return used * per_slot + sum(array.nbytes for array in fixed) + self.filling.nbytes

    def begin_chunk(self, stream: int, base: Bytes, also: Sequence[Change] = ()) -> int:
        """Leave a complete chunk and begin the next one on a reference frame, in :attr:`next_slot`, which is returned.

        An interrupt cannot split this, nor what it ``also`` changes, such as which reference frame the slot has.
        """
        complete, slot = self.open.item(stream), self.next_slot
        _, free, used = self.numbers.tolist()
        free, used = (free - 1, used) if free else (free, used + 1)
        users = self.users.item(complete) - 1
        changes: list[Change] = [(self.users, slot, 1), (self.sizes, slot, 0), (self.previous, slot, complete)]
        changes.append((self.users, complete, users))
        if not users:
            changes.append((self.free, free, complete))
            free += 1
        changes += [(self.numbers, 1, free), (self.numbers, 2, used), (self.open, stream, slot)]
        apply_changes([*changes, *self.filling.beginning(stream, base), *also])
        return slot

    def clear(self, bases: Sequence[Bytes] = ()) -> None:
        """Forget all observations. Memory is kept; pages that were never used stay untouched.

        :param bases: the reference frame of each stream's first chunk; by default, that of the chunk it was filling
        """
        written, opened, filling = np.flatnonzero(self.newest), self.numbers.item(2), self.filling
        first = np.arange(self.streams)
        zeros: list[tuple[NDArray[Any], Any]] = [(self.pattern, written), (self.newest, written)]
        # Also entries that nothing refers to any more: they are saved, and loading refuses numbers out of bounds.
        zeros += [(getattr(self, name), slice(opened)) for name in _BY_SLOT]
        zeros += [(part, ...) for part in (self.last_position, filling.filled, self.total, self.repeated)]
        changes: list[Change] = [(target, key, 0) for target, key in zeros]
        changes += [(self.numbers, ..., np.array([1, 0, self.streams])), (self.last_number, ..., NONE)]
        changes += [(self.open, ..., first), (self.users, first, 1)]
        for stream, base in enumerate(bases if len(bases) else filling.base):
            changes += filling.beginning(stream, base)
        apply_changes(changes)

    @property
    def own(self) -> NDArray[np.int64]:
        """The references of the last observations, one for each stream."""
        return np.arange(len(self.newest) - self.streams, len(self.newest))

    def reached(self, references: NDArray[np.int64]) -> list[int]:
        """The slots of all complete chunks that these observations reach into, each once."""
        found: set[int] = set()
        for _, slots in self.walk(references):
            found.update(slots.tolist())
        return sorted(found.difference(self.open.tolist()))

    def reaching(self, chunks: NDArray[np.bool_], references: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which observations reach into any of these chunks, which are given as a flag for each slot."""
        found = np.zeros(len(references), np.bool_)
        for some, slots in self.walk(references):
            found[some] |= chunks[slots]
        return found

    def walk(self, references: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Indices of observations with the slot of their newest frame, then of those that reach further, …"""
        newest = self.newest[references]
        some = newest.nonzero()[0]
        slots, offsets = np.divmod(newest[some].astype(np.int64) - 1, self.room)
        further = self.reach[self.pattern[references[some]]] - offsets
        while len(some):
            yield some, slots
            more = further > 0
            some, slots = some[more], self.previous[slots[more]].astype(np.int64)
            further = further[more] - self.sizes[slots]

    @property
    def _facts(self) -> dict[str, list[int]]:
        """What a saved state must agree with."""
        geometry = self.geometry
        return {
            "geometry": [geometry.depth, geometry.pixels, geometry.group],
            "shape": [self.chunk, self.streams, self.cells, self.planes, self.slots],
        }

    def state(self) -> State:
        arrays = {name: getattr(self, name) for name in ("newest", "pattern", *_WHOLE)}
        arrays.update({name: used(getattr(self, name)) for name in _BY_SLOT})
        return State(self._facts, arrays).put("filling", self.filling.state())

    def restore(self, state: State) -> None:
        """Take over a saved state. Numbers out of bounds are refused, because kernels follow them."""
        state.same(**self._facts)
        state.copy_to(**{name: getattr(self, name) for name in ("newest", "pattern", *_WHOLE)})
        state.begin_of(**{name: getattr(self, name) for name in _BY_SLOT})
        self.filling.restore(state.part("filling"))
        patterns, free, opened = self.numbers.tolist()
        if not (1 <= patterns <= PATTERNS and 0 <= free <= opened <= self.slots):
            raise StateError(f"there are {patterns} patterns and {free} of {opened} slots free")
        limits = {
            "newest": (0, opened * self.room),
            "pattern": (0, patterns - 1),
            "last_row": (0, self.geometry.depth - 1),
            "last_position": (0, opened * self.room - 1),
            "open": (0, opened - 1),
            "previous": (0, opened - 1),
            "sizes": (0, self.room),
            "users": (0, len(self.newest) + 1),
            "free": (0, opened - 1),
        }
        if any(len(state.arrays[name]) > opened for name in _BY_SLOT):
            raise StateError(f"there are more chunks than the {opened} that were ever begun")
        for name, (low, high) in limits.items():
            # Entries that were not saved are zero: they were never used.
            within(name, getattr(self, name)[:opened] if name in _BY_SLOT else getattr(self, name), low, high)
        _check_references(self)
        self.workspace = None

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (self.geometry, self.chunk, self.streams, self.cells, self.slots, self.planes)
        return _restored, (arguments, self.state())


def _restored(arguments: tuple[Any, ...], state: State) -> Streams:
    """Streams from a pickle or a copy, without the workspace of the others."""
    streams = Streams(*arguments)
    streams.restore(state)
    return streams


def _check_references(streams: Streams) -> None:
    """Raise if an observation has a frame outside of its chunks, or if kernels would write outside of an open chunk.

    Each number was compared with its limits before.
    """
    backs = streams.backs.astype(np.int64)
    reach = np.where(backs == ZERO, 0, backs).max(axis=1)
    if (reach != streams.reach).any() or reach.max() > MAX_BACK:
        raise StateError("patterns reach further back than is allowed")
    _check_free(streams)
    _check_open(streams)
    furthest = int(reach.max())
    within_reach = _within_reach(streams, furthest)
    needed = (reach + 1).astype(np.uint8)
    for begin in range(0, len(streams.newest), _BATCH):
        some = slice(begin, begin + _BATCH)
        found = within_reach.take(streams.newest[some])
        # Patterns are looked at only if some observation has fewer frames than the longest pattern needs.
        if found.min() <= furthest and (found < needed[streams.pattern[some]]).any():
            raise StateError("an observation has frames that are in no chunk")


def _within_reach(streams: Streams, reach: int) -> NDArray[np.uint8]:
    """For each position of a newest frame, plus 1: the number of frames from there backwards; 0 if none.

    There are far fewer positions than observations, and looking one up takes no division.
    """
    opened = int(streams.numbers[2])
    sizes = np.where(streams.users[:opened] > 0, streams.sizes[:opened], 0).astype(np.int16)
    previous = streams.previous[:opened]
    before, hop, goes_on = np.zeros(opened, np.int16), previous, np.ones(opened, np.bool_)
    for _ in range(reach):  # a chunk that has frames has at least one
        found = sizes[hop]
        goes_on &= found > 0
        before = np.minimum(before + np.where(goes_on, found, 0), reach)
        if not (goes_on & (before < reach)).any():
            break
        hop = previous[hop]
    offsets = np.arange(streams.room, dtype=np.int16)
    # Twice the reach of the longest pattern, plus one, fits into a byte.
    counts = before.astype(np.uint8)[:, np.newaxis] + np.minimum(offsets, reach).astype(np.uint8) + np.uint8(1)
    counts *= offsets < sizes[:, np.newaxis]
    return np.concatenate([[np.uint8(_ANYTHING)], counts.reshape(-1)])


def _check_free(streams: Streams) -> None:
    """Raise if a free slot is in use or listed twice: two chunks would get it."""
    _, free, opened = streams.numbers.tolist()
    idle = np.flatnonzero(streams.users[:opened] == 0)
    if not np.array_equal(np.sort(streams.free[:free]), idle):
        raise StateError("the list of free slots does not match the slots in use")


def _check_open(streams: Streams) -> None:
    """Raise if an open chunk is shared, free, or claims more bytes than its frames can take."""
    filling, frame_nbytes = streams.filling, streams.geometry.frame_nbytes
    slots: list[int] = streams.open.tolist()
    sizes: NDArray[Any] = streams.sizes[streams.open].astype(np.int64)
    if len(set(slots)) != len(slots) or (streams.users[streams.open] < 1).any():
        raise StateError("an open chunk belongs to two streams, or its slot is free")
    steps = [2 * int(filling.counts[stream, :size].sum(dtype=np.int64)) for stream, size in enumerate(sizes.tolist())]
    fits = filling.filled[:, 0] <= sizes * worst_steps_nbytes(frame_nbytes)
    fits &= (filling.filled[:, 0] == steps) & (filling.filled[:, 1] <= sizes * frame_nbytes)
    if not fits.all():
        raise StateError("an open chunk claims more bytes than its frames can take")
