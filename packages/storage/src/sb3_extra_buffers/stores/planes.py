"""One plane of frames as a store that an array can stand on."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.frames import FrameKernels
from sb3_extra_buffers.heaps.state import State
from sb3_extra_buffers.memory import Bytes, Indices


class Frames(Protocol):
    """Observations made of frames, in one plane or two: what transitions start from, and what they lead to."""

    @property
    def cells(self) -> int:
        """How many observations a plane has."""

    @property
    def row_nbytes(self) -> int:
        """Size of one observation."""

    @property
    def decided(self) -> object:
        """The store of the frames, once it is known how they are stacked; ``None`` before."""

    @property
    def kernels(self) -> FrameKernels:
        """What does the work."""

    @property
    def codec(self) -> str:
        """How frames are stored."""

    @property
    def overhead(self) -> int:
        """Bytes of memory besides payloads."""

    @property
    def dropped(self) -> int:
        """How many chunks of frames were too large for the heap."""

    def write(self, plane: int, cells: Indices, rows: Bytes) -> None:
        """Give observations new content."""

    def write_both(self, cells: Indices, rows: Bytes, following: Bytes) -> None:
        """Give the same cells of both planes new content."""

    def read(self, plane: int, cells: Indices, out: Bytes) -> None:
        """Read observations of one plane."""

    def read_both(self, cells: Indices, out: Bytes, next_out: Bytes) -> None:
        """Read the same cells of both planes."""

    def stored_nbytes(self) -> int:
        """How many bytes the content of both planes takes."""

    def lost(self) -> NDArray[np.bool_] | None:
        """For each observation, plane by plane, whether a heap has dropped frames of it; ``None`` if it never did."""

    def holds(self, plane: int, cells: Indices) -> NDArray[np.bool_]:
        """Which of these observations can be read."""

    def clear(self) -> None:
        """Forget everything."""

    def state(self) -> State:
        """What another one on an equal heap needs in order to become this one."""

    def restore(self, state: State) -> None:
        """Become what another one was. Its heap has been restored."""


class Plane:
    """A plane. The first one answers for what both take.

    :param frames: the observations
    :param number: which plane
    """

    def __init__(self, frames: Frames, number: int) -> None:
        self.frames = frames
        self.cells = frames.cells
        self.row_nbytes = frames.row_nbytes
        #: Which plane it is.
        self.number = number

    @property
    def decided(self) -> object:
        """The store of the frames, once it is known how they are stacked; ``None`` before."""
        return self.frames.decided

    @property
    def codec(self) -> str:
        return self.frames.codec

    @property
    def overhead(self) -> int:
        return 0 if self.number else self.frames.overhead

    def read(self, cells: Indices, out: Bytes, /) -> None:
        self.frames.read(self.number, cells, out)

    def write(self, cells: Indices, rows: Bytes, /) -> None:
        self.frames.write(self.number, cells, rows)

    def stored_nbytes(self) -> int:
        return 0 if self.number else self.frames.stored_nbytes()

    def holds(self, cells: Indices, /) -> NDArray[np.bool_]:
        return self.frames.holds(self.number, cells)

    def clear(self) -> None:
        if not self.number:
            self.frames.clear()

    def state(self) -> State:
        return State() if self.number else self.frames.state()

    def restore(self, state: State) -> None:
        if not self.number:
            self.frames.restore(state)
