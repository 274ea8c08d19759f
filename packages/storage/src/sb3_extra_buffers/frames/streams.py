"""``Streams``: which frames every observation is made of. Only numbers and the newest frames; no payloads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.frames.checking import check_ways
from sb3_extra_buffers.frames.geometry import FrameGeometry
from sb3_extra_buffers.frames.open_chunks import OpenChunks
from sb3_extra_buffers.heaps.state import State, StateError, used, within
from sb3_extra_buffers.memory import extended, untouched, used_part

# What follows is part of the contract of kernels: compiled ones have it built in. To change it takes a new protocol.

#: How far back, in frames of its stream, an observation may reach. What is older is stored again. At least four stacks.
MAX_BACK = 120
#: Stands for a frame of zeros, which is never stored: stacks begin with them.
ZERO = 255
#: Numbers of frames that are not in the stream: of zeros, and of none at all.
BLANK, NONE = -1, -2
#: How many different ways to be made of frames there may be.
PATTERNS = 255

#: Arrays with an entry for each slot, most of which are never used.
_BY_SLOT = ("previous", "sizes", "users", "free")
#: Arrays that are saved as a whole.
_WHOLE = ("backs", "reach", "last", "last_row", "last_number", "last_position", "repeated", "total", "open", "numbers")


class Streams:
    """The frames of each environment in the order in which they came, cut into chunks.

    An observation is a reference: the position of its newest frame, and a *pattern* that says for each of its frames
    how many frames further back it is. A position is ``slot * room + offset``; the slot stands for a chunk, and
    ``previous`` leads to the chunk before it. A chunk lives as long as a reference reaches into it.

    The chunk that a stream is filling is here until it is complete. So is the last observation: what comes is compared
    with it, frame by frame, and only what is found nowhere is new. It has a reference of its own behind those of the
    observations, because the one that it was written to may be overwritten first.

    :param geometry: how frames lie in an observation
    :param chunk: frames of a complete chunk, at least two observations' worth; its last observation may add more
    :param streams: how many there are; observation ``i`` belongs to stream ``i % streams``
    :param cells: how many observations a plane can have; those of the next plane are numbered on
    :param slots: how many chunks there can be at one time
    :param planes: how many planes there are
    """

    def __init__(
        self, geometry: FrameGeometry, chunk: int, streams: int, cells: int, slots: int, planes: int = 1
    ) -> None:
        self.geometry = geometry
        self.chunk = chunk
        #: How many frames a chunk can have: an observation that finds no pattern is stored twice.
        self.room = chunk - 1 + 2 * geometry.depth
        #: How many observations a plane has.
        self.cells = cells
        self.planes = planes
        references = planes * cells
        depth, frame_nbytes = geometry.depth, geometry.frame_nbytes
        # There is room for the worst case; what is never used takes no memory.
        #: Position of each observation's newest stored frame, plus 1; 0 for an observation that was never written.
        self.newest = untouched(references + streams, np.int32)
        self.pattern = untouched(references + streams, np.uint8)
        #: How far back each frame of an observation is, by pattern.
        self.backs = np.zeros((PATTERNS, depth), np.uint8)
        self.backs[0] = np.arange(depth)[::-1]
        #: How far back a pattern reaches at the most.
        self.reach = np.zeros(PATTERNS, np.uint8)
        self.reach[0] = depth - 1
        #: The last observation of each stream: its frames in any order; for each place which of these it is (equal ones
        #: may be the same), its number in the stream, and its position.
        self.last = np.zeros((streams, depth, frame_nbytes), np.uint8)
        self.last_row = np.zeros((streams, depth), np.int64)
        self.last_number = np.full((streams, depth), NONE, np.int64)
        self.last_position = np.zeros((streams, depth), np.int32)
        #: How often the last observation of each stream was repeated while it reached into a chunk that is complete.
        self.repeated = np.zeros(streams, np.int64)
        #: How many frames each stream has had.
        self.total = np.zeros(streams, np.int64)
        #: The chunk that is being filled: its slot, its patches.
        self.open = np.zeros(streams, np.int32)
        self.filling = OpenChunks(streams, self.room, frame_nbytes)
        self.previous = untouched(slots, np.int32)
        #: How many frames a chunk has.
        self.sizes = untouched(slots, np.int32)
        #: How many observations reach into a chunk; the open ones count once more.
        self.users = untouched(slots, np.int32)
        #: Slots that were used and are not any more, as a stack.
        self.free = untouched(slots, np.int32)
        #: How many patterns there are, free slots, slots that were ever used.
        self.numbers = np.array([1, 0, 0], np.int64)
        #: What kernels keep for themselves, such as addresses. It does not travel.
        self.workspace: object = None
        for stream in range(streams):
            self.open[stream] = self.take()

    @property
    def streams(self) -> int:
        """How many streams there are."""
        return len(self.total)

    @property
    def slots(self) -> int:
        """How many chunks there can be."""
        return len(self.users)

    @property
    def free_slots(self) -> int:
        """How many more chunks there can be."""
        _, free, used = self.numbers.tolist()
        return int(free + self.slots - used)

    @property
    def nbytes(self) -> int:
        """Memory that is in use for all of this, besides patches."""
        used = int(self.numbers[2])
        per_slot = sum(array.itemsize for array in (self.previous, self.sizes, self.users, self.free))
        fixed = (self.newest, self.pattern, self.last, self.last_row, self.last_number, self.last_position)
        return used * per_slot + sum(array.nbytes for array in fixed) + self.filling.nbytes

    def take(self) -> int:
        """A slot for a new chunk, in use from now on. There must be one."""
        _, free, used = self.numbers.tolist()
        if free:
            self.numbers[1] = free - 1
            slot = int(self.free.item(free - 1))
        else:
            self.numbers[2] = used + 1
            slot = int(used)
        self.users[slot] = 1
        self.sizes[slot] = 0
        return slot

    def advance(self, stream: int) -> int:
        """Leave a complete chunk behind and open another one. Returns its slot."""
        complete, following = self.open.item(stream), self.take()
        self.open[stream] = following
        self.previous[following] = complete
        self.leave(complete)
        return following

    def clear(self) -> None:
        """Forget all observations. Memory is kept for what comes; that which was never used stays untouched."""
        written, opened = np.flatnonzero(self.newest), self.numbers.item(2)
        self.newest[written] = self.pattern[written] = 0
        # Also what nobody follows any more: it is saved, and who loads it refuses numbers that lead nowhere.
        for name in _BY_SLOT:
            getattr(self, name)[:opened] = 0
        self.last_position[:] = 0
        self.filling.filled[:] = 0
        self.total[:] = self.repeated[:] = 0
        self.numbers[:] = 1, 0, 0
        for stream in range(self.streams):
            self.forget_last(stream)
            self.open[stream] = self.take()

    def forget_last(self, stream: int) -> None:
        """Let the next observation of a stream be compared with nothing."""
        self.last_number[stream] = NONE

    def leave(self, slot: int) -> None:
        """One user less; a chunk without users makes its slot free."""
        users = self.users.item(slot) - 1
        self.users[slot] = users
        if not users:
            free = self.numbers.item(1)
            self.free[free] = slot
            self.numbers[1] = free + 1

    def reached(self, references: NDArray[np.int64]) -> list[int]:
        """The slots of all chunks that these observations reach into, each once, without those that are open."""
        found: set[int] = set()
        for _, slots in self.walk(references):
            found.update(slots.tolist())
        return sorted(found.difference(self.open.tolist()))

    def reaching(self, chunks: NDArray[np.bool_]) -> NDArray[np.int64]:
        """All observations that reach into any of these chunks.

        :param chunks: for each slot, whether it is meant
        """
        references = np.arange(len(self.newest) - self.streams)
        found = np.zeros(len(references), np.bool_)
        for some, slots in self.walk(references):
            found[some] |= chunks[slots]
        return np.flatnonzero(found)

    def walk(self, references: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Observations with the slot of their newest frame, then those that reach further with the one before, …"""
        references = references[self.newest[references] > 0]
        positions = self.newest[references].astype(np.int64) - 1
        slots, offsets = np.divmod(positions, self.room)
        further = self.reach[self.pattern[references]] - offsets
        while len(references):
            yield references, slots
            more = further > 0
            references, slots = references[more], self.previous[slots[more]].astype(np.int64)
            further = further[more] - self.sizes[slots]

    def state(self) -> State:
        """What another one needs in order to become this one."""
        geometry = self.geometry
        facts = {
            "geometry": [geometry.depth, geometry.pixels, geometry.group],
            "shape": [self.chunk, self.streams, self.cells, self.planes, self.slots],
        }
        arrays = {name: getattr(self, name) for name in ("newest", "pattern", *_WHOLE)}
        arrays.update({name: used(getattr(self, name)) for name in _BY_SLOT})
        return State(facts, arrays).put("filling", self.filling.state())

    def restore(self, state: State) -> None:
        """Become what another one was. Numbers that lead nowhere are refused: kernels follow them."""
        geometry = self.geometry
        state.same(geometry=[geometry.depth, geometry.pixels, geometry.group])
        state.same(shape=[self.chunk, self.streams, self.cells, self.planes, self.slots])
        state.copy_to(**{name: getattr(self, name) for name in ("newest", "pattern", *_WHOLE)})
        state.begin_of(**{name: getattr(self, name) for name in _BY_SLOT})
        self.filling.restore(state.part("filling"))
        patterns, free, opened = self.numbers.tolist()
        if not (1 <= patterns <= PATTERNS and 0 <= free <= opened <= self.slots):
            raise StateError(f"there are {patterns} patterns and {free} of {opened} slots free")
        limits = {
            "newest": (0, opened * self.room),
            "pattern": (0, patterns - 1),
            "last_row": (0, geometry.depth - 1),
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
            # What was not saved is zero: it was never used.
            within(name, getattr(self, name)[:opened] if name in _BY_SLOT else getattr(self, name), low, high)
        check_ways(self, MAX_BACK, ZERO)
        self.workspace = None

    def __getstate__(self) -> dict[str, Any]:
        used = {name: used_part(getattr(self, name)) for name in _BY_SLOT}
        return {**self.__dict__, **used, "slots": self.slots, "workspace": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        slots = state.pop("slots")
        self.__dict__.update(state)
        for name in _BY_SLOT:
            setattr(self, name, extended(state[name], slots))
