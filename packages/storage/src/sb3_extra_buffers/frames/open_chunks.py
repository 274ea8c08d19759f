"""``OpenChunks``: the chunk that each stream is filling, packed as its frames come."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.frames.packing import END, PADDING, count_dtype, worst_steps_nbytes
from sb3_extra_buffers.heaps.state import State, StateError, within
from sb3_extra_buffers.memory import Bytes, untouched


class OpenChunks:
    """Patches that are still being written: the parts of a chunk side by side, because each of them grows.

    There is room for the worst case; what is never used takes no memory.

    :param streams: how many there are
    :param frames: how many frames a chunk can have
    :param frame_nbytes: size of a frame
    """

    def __init__(self, streams: int, frames: int, frame_nbytes: int) -> None:
        #: How many steps each patch has.
        self.counts: NDArray[Any] = np.zeros((streams, frames), count_dtype(frame_nbytes))
        self.steps = untouched((streams, frames * worst_steps_nbytes(frame_nbytes)))
        self.content = untouched((streams, frames * frame_nbytes + PADDING))
        #: How many bytes of the steps are written, and of the content.
        self.filled = np.zeros((streams, 2), np.int64)
        #: How many of these belong to the first patch.
        self.first_nbytes = np.zeros(streams, np.int64)
        #: What the first patch is made on.
        self.base = np.zeros((streams, frame_nbytes), np.uint8)
        #: What the next patch will be made on: the newest frame, or the base.
        self.tail = np.zeros((streams, frame_nbytes), np.uint8)

    @property
    def nbytes(self) -> int:
        """Memory besides patches."""
        return self.counts.nbytes + self.filled.nbytes + self.base.nbytes + self.tail.nbytes

    @property
    def packed_nbytes(self) -> int:
        """What all patches take."""
        return int(self.filled.sum())

    def begin(self, stream: int, base: Bytes) -> None:
        """Forget a chunk and begin another one."""
        self.filled[stream] = 0
        self.base[stream] = self.tail[stream] = base

    def parts(self, stream: int, frames: int) -> list[Bytes]:
        """The bytes of a chunk that has so many frames, in pieces that are valid until the next is begun."""
        steps, content = self.filled[stream].tolist()
        counts = self.counts[stream, :frames].view(np.uint8)
        return [counts, self.steps[stream, :steps], self.content[stream, :content], END]

    def packed(self, stream: int, frames: int) -> Bytes:
        """The bytes of a chunk that has so many frames, in one piece."""
        return np.concatenate(self.parts(stream, frames))

    def state(self) -> State:
        """What another one needs in order to become this one."""
        steps, content = self.filled.max(axis=0).tolist()
        arrays = {name: getattr(self, name) for name in ("counts", "filled", "first_nbytes", "base", "tail")}
        return State({}, {**arrays, "steps": self.steps[:, :steps], "content": self.content[:, :content]})

    def restore(self, state: State) -> None:
        """Become what another one was."""
        names = ("counts", "filled", "first_nbytes", "base", "tail")
        state.copy_to(**{name: getattr(self, name) for name in names})
        within("filled", self.filled, 0, self.content.shape[1] - PADDING)
        for number, target in enumerate((self.steps, self.content)):
            part = state.array(("steps", "content")[number], np.uint8, len(target), None)
            if part.shape[1] > target.shape[1] or self.filled[:, number].max() > part.shape[1]:
                raise StateError("chunks are filled with more than there is")
            target[:, : part.shape[1]] = part

    def __getstate__(self) -> dict[str, Any]:
        steps, content = self.filled.max(axis=0).tolist()
        shapes = self.steps.shape, self.content.shape
        written = {"steps": self.steps[:, :steps].copy(), "content": self.content[:, :content].copy()}
        return {**self.__dict__, **written, "shapes": shapes}

    def __setstate__(self, state: dict[str, Any]) -> None:
        shapes = state.pop("shapes")
        self.__dict__.update(state)
        for name, shape in zip(("steps", "content"), shapes):
            whole = untouched(shape)
            whole[:, : state[name].shape[1]] = state[name]
            setattr(self, name, whole)
