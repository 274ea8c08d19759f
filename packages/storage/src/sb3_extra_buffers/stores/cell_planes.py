"""``CellPlanes``: what looks like frames and is stored as cells, because that is smaller."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.frames import FrameKernels, create
from sb3_extra_buffers.heaps.state import State
from sb3_extra_buffers.memory import Bytes, Indices
from sb3_extra_buffers.stores.faces import NextFace, ObservationFace
from sb3_extra_buffers.stores.protocol import Store
from sb3_extra_buffers.stores.transitions import TransitionStore


class CellPlanes:
    """Observations, each by itself, in one plane or two, of which the second is what transitions lead to.

    Only for heaps that grow: nothing is ever dropped.

    :param stores: one for each plane
    :param streams: how many environments take turns
    """

    #: How many cells were too large for the heap.
    dropped = 0

    def __init__(self, stores: Sequence[Store], streams: int) -> None:
        self._planes = list(stores)
        if len(stores) > 1:
            transitions = TransitionStore(stores[0], stores[1], streams)
            self._planes = [ObservationFace(transitions), NextFace(transitions)]
        self.cells, self.row_nbytes = stores[0].cells, stores[0].row_nbytes

    @property
    def decided(self) -> CellPlanes:
        """This one."""
        return self

    @property
    def kernels(self) -> FrameKernels:
        """What images are turned by; cells themselves need none."""
        return create()

    @property
    def codec(self) -> str:
        return self._planes[0].codec

    @property
    def overhead(self) -> int:
        return sum(plane.overhead for plane in self._planes)

    def write(self, plane: int, cells: Indices, rows: Bytes) -> None:
        self._planes[plane].write(cells, rows)

    def write_both(self, cells: Indices, rows: Bytes, following: Bytes) -> None:
        self._planes[0].write(cells, rows)
        self._planes[1].write(cells, following)

    def read(self, plane: int, cells: Indices, out: Bytes) -> None:
        self._planes[plane].read(cells, out)

    def read_both(self, cells: Indices, out: Bytes, next_out: Bytes) -> None:
        self._planes[0].read(cells, out)
        self._planes[1].read(cells, next_out)

    def stored_nbytes(self) -> int:
        return sum(plane.stored_nbytes() for plane in self._planes)

    def lost(self) -> NDArray[np.bool_] | None:
        return None

    def holds(self, plane: int, cells: Indices) -> NDArray[np.bool_]:
        return self._planes[plane].holds(cells)

    def clear(self) -> None:
        self._planes[0].clear()  # and with it the other one

    def state(self) -> State:
        return self._planes[0].state()

    def restore(self, state: State) -> None:
        self._planes[0].restore(state)
