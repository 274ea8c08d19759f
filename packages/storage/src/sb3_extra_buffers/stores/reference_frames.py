"""``ReferenceFrames``: frames that the first frame of many chunks is a patch on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.frames import FrameKernels
from sb3_extra_buffers.heaps.state import State, StateError, used, within
from sb3_extra_buffers.memory import Bytes, untouched

_ZERO = 0


class ReferenceFrames:
    """Chooses what the first frame of a chunk is compared with, and keeps it while a chunk needs it.

    A chunk can be read without its neighbours, so its first frame has no frame before it. Scenes stay alike for long,
    though: a frame that is kept uncompressed, outside of all chunks, serves many of them. Where nothing stays alike,
    the first frame is a patch on zeros, which is the frame itself.

    A frame is kept if it pays: when a chunk is complete, its newest frame must be half as large as a patch on that of
    the chunk before it. It is given up when what it costs, beyond what it cost at its best, has added up to a frame.

    An interrupt between two lines may leave a frame in memory that no chunk needs, and nothing else.

    :param kernels: measure patches
    :param streams: number of streams; each has a reference frame of its own
    :param slots: number of chunks there can be
    :param frame_nbytes: size of a frame
    """

    def __init__(self, kernels: FrameKernels, streams: int, slots: int, frame_nbytes: int) -> None:
        self._kernels = kernels
        self._nbytes = frame_nbytes
        self._frames: list[Bytes | None] = [np.zeros(frame_nbytes, np.uint8)]
        self._users = [1]
        self._unused: list[int] = []
        #: For each slot, the number of the reference frame of its chunk.
        self.of_slot = untouched(slots, np.int32)
        self._current = [_ZERO] * streams
        self._candidate: list[Bytes | None] = [None] * streams
        self._best = [0] * streams
        self._rent = [0] * streams
        #: Where in memory each reference frame is.
        self.addresses: NDArray[np.uint64] = np.empty(0, np.uint64)
        self._note_addresses()

    @property
    def nbytes(self) -> int:
        """Memory of all reference frames."""
        candidates = sum(frame is not None for frame in self._candidate)
        return (sum(frame is not None for frame in self._frames) + candidates) * self._nbytes

    def open(self, stream: int, slot: int) -> Bytes:
        """The reference frame for a chunk that begins in a slot."""
        number, old = self._current[stream], self.of_slot.item(slot)
        if number != old:
            self._users[number] += 1
            self.of_slot[slot] = number
            self._leave(old)  # last: after an interrupt, no frame is missing that a chunk needs
        return self._frame(number)

    def learn(self, stream: int, newest: Bytes, first_nbytes: int) -> None:
        """Choose the reference frame of the chunks to come.

        :param stream: the stream whose chunk is complete
        :param newest: the newest frame of the chunk
        :param first_nbytes: size of the patch of its first frame
        """
        number = self._current[stream]
        if number == _ZERO:
            self._consider(stream, newest)
            return
        self._best[stream] = min(self._best[stream], first_nbytes)
        self._rent[stream] += first_nbytes - self._best[stream]
        if self._rent[stream] > self._nbytes or 2 * first_nbytes > self._nbytes:
            self._current[stream] = _ZERO
            self._leave(number)
            self._candidate[stream] = newest.copy()

    def of(self, slots: Sequence[int]) -> list[Bytes]:
        """The reference frames of the chunks in these slots."""
        return [self._frame(number) for number in self.of_slot[np.asarray(slots, np.int64)].tolist()]

    def clear(self) -> None:
        """Forget all chunks. Reference frames are kept: later chunks of the streams are likely to look alike."""
        needed, numbers = {_ZERO, *self._current}, range(len(self._frames))
        frames = [frame if number in needed else None for number, frame in enumerate(self._frames)]
        self.of_slot[self.of_slot != _ZERO] = _ZERO
        self._frames, self._users, self._unused = (
            *(frames, [int(number in needed) for number in numbers]),
            [number for number in numbers if number not in needed],
        )

    def _consider(self, stream: int, frame: Bytes) -> None:
        candidate = self._candidate[stream]
        self._candidate[stream] = None
        if candidate is not None:
            alone, patch = (self._kernels.measure(old, frame) for old in (self._frame(_ZERO), candidate))
            if 2 * patch < alone:
                self._current[stream] = self._keep(candidate)
                self._best[stream], self._rent[stream] = patch, 0
                return
        self._candidate[stream] = frame.copy()

    def _frame(self, number: int) -> Bytes:
        frame = self._frames[number]
        assert frame is not None
        return frame

    def _keep(self, frame: Bytes) -> int:
        if self._unused:
            number = self._unused[-1]
            self.addresses[number] = frame.ctypes.data
            # One statement, as in _leave: a number is either in use or unused.
            self._frames[number], self._users[number], self._unused = frame, 1, self._unused[:-1]
            return number
        number = len(self._frames)
        if number == len(self.addresses):
            self.addresses = np.concatenate([self.addresses, np.zeros_like(self.addresses)])
        self.addresses[number] = frame.ctypes.data
        self._frames, self._users = [*self._frames, frame], [*self._users, 1]
        return number

    def _leave(self, number: int) -> None:
        self._users[number] -= 1
        if number != _ZERO and not self._users[number]:
            self._frames[number], self._unused = None, [*self._unused, number]

    def _note_addresses(self) -> None:
        addresses = [0 if frame is None else frame.ctypes.data for frame in self._frames]
        self.addresses = np.array(addresses, np.uint64)

    def state(self) -> State:
        """What another one needs in order to become this one."""
        kept = [number for number, frame in enumerate(self._frames) if frame is not None]
        waiting = [stream for stream, frame in enumerate(self._candidate) if frame is not None]
        facts = {
            "kept": kept,
            "waiting": waiting,
            "users": list(self._users),
            "unused": list(self._unused),
            "current": list(self._current),
            "best": list(self._best),
            "rent": list(self._rent),
        }
        frames = [self._frames[number] for number in kept] + [self._candidate[stream] for stream in waiting]
        return State(facts, {"frames": np.array(frames), "of_slot": used(self.of_slot)})

    def restore(self, state: State) -> None:
        """Become what another one was."""
        streams = len(self._current)
        users, kept, unused, waiting = (state.numbers(name) for name in ("users", "kept", "unused", "waiting"))
        current, best, rent = (state.numbers(name, streams) for name in ("current", "best", "rent"))
        frames = state.array("frames", np.uint8, len(kept) + len(waiting), self._nbytes)
        state.begin_of(of_slot=self.of_slot)
        within("of_slot", state.arrays["of_slot"], 0, len(users) - 1)
        in_use = {*np.flatnonzero(np.bincount(state.arrays["of_slot"])).tolist(), *current, _ZERO}
        numbers = set(range(len(users)))
        fits = {*kept, *unused} == numbers and not {*kept} & {*unused} and in_use <= {*kept}
        if not fits or len(kept) + len(unused) != len(users) or not {*waiting} <= set(range(streams)):
            raise StateError("reference frames of chunks are missing")
        self._frames = [None] * len(users)
        for number, frame in zip(kept, frames):  # never written to, so they can stay where they are
            self._frames[number] = frame
        for stream, frame in zip(waiting, frames[len(kept) :]):
            self._candidate[stream] = frame.copy()
        self._users, self._unused, self._current, self._best, self._rent = users, unused, current, best, rent
        self.addresses = np.zeros(len(users), np.uint64)
        self.addresses[kept] = frames.ctypes.data + self._nbytes * np.arange(len(kept), dtype=np.uint64)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._note_addresses()  # a copy has frames of its own
