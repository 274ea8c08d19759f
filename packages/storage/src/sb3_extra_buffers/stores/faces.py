"""The two sides of a :class:`TransitionStore`, each as a store that an array can stand on."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.heaps.state import State
from sb3_extra_buffers.memory import Bytes, Indices
from sb3_extra_buffers.stores.origins import LocatedStore, Origins
from sb3_extra_buffers.stores.transitions import TransitionStore


class ObservationFace:
    """What transitions start from.

    :param transitions: the store behind it
    """

    def __init__(self, transitions: TransitionStore) -> None:
        self._transitions = transitions
        self.cells = transitions.observations.cells
        self.row_nbytes = transitions.observations.row_nbytes

    @property
    def codec(self) -> str:
        return self._transitions.observations.codec

    @property
    def overhead(self) -> int:
        return self._transitions.observations.overhead

    def read(self, cells: Indices, out: Bytes, /) -> None:
        self._transitions.observations.read(cells, out)

    def origins(self, cells: Indices, /) -> Origins:
        return cast("LocatedStore", self._transitions.observations).origins(cells)

    def write(self, cells: Indices, rows: Bytes, /) -> None:
        self._transitions.write_observations(cells, rows)

    def stored_nbytes(self) -> int:
        return self._transitions.observations.stored_nbytes()

    def holds(self, cells: Indices, /) -> NDArray[np.bool_]:
        return self._transitions.observations.holds(cells)

    def clear(self) -> None:
        self._transitions.clear()

    def state(self) -> State:
        return self._transitions.state()

    def restore(self, state: State, /) -> None:
        self._transitions.restore(state)


class NextFace(ObservationFace):
    """What transitions lead to; its size is that of what is not shared."""

    @property
    def overhead(self) -> int:
        return self._transitions.overhead

    def read(self, cells: Indices, out: Bytes, /) -> None:
        self._transitions.read_next(cells, out)

    def origins(self, cells: Indices, /) -> Origins:
        return self._transitions.origins_of_next(cells)

    def write(self, cells: Indices, rows: Bytes, /) -> None:
        self._transitions.write_next(cells, rows)

    def refuse_too_large(self, rows: Bytes) -> None:
        """Refuse rows that could never be written. What transitions start from is written at once, and refused then."""
        self._transitions.refuse_next(rows)

    def stored_nbytes(self) -> int:
        return self._transitions.stored_nbytes_of_next()

    # Inherited «holds» is right: what a transition leads to is written after it, and so dropped after it.

    # The other face answers for both.

    def state(self) -> State:
        return State()

    def restore(self, state: State, /) -> None:
        pass
