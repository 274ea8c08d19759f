"""``LazyStore``: becomes another store when it sees the first rows."""

from __future__ import annotations

from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.heaps.state import State
from sb3_extra_buffers.memory import Bytes, Indices
from sb3_extra_buffers.stores.origins import NO_CELL, LocatedStore, Origins
from sb3_extra_buffers.stores.protocol import Store


class Decision(Protocol):
    """Makes the real store; an object rather than a closure, so that a buffer pickles before it was written to."""

    def __call__(self, rows: Bytes, /) -> Store: ...

    def choice(self) -> dict[str, Any]:
        """What was decided, as JSON can say it."""

    def repeat(self, choice: State, /) -> Store:
        """Make the store that was decided for before."""


class LazyStore:
    """Cells whose codec depends on what will be stored.

    :param cells: how many cells there are
    :param row_nbytes: size of one cell
    :param decide: called with the first rows, once
    """

    def __init__(self, cells: int, row_nbytes: int, decide: Decision) -> None:
        self.cells = cells
        self.row_nbytes = row_nbytes
        self._decide = decide
        self._store: Store | None = None

    @property
    def codec(self) -> str:
        return "auto (not yet chosen: nothing is stored)" if self._store is None else self._store.codec

    @property
    def overhead(self) -> int:
        return 0 if self._store is None else self._store.overhead

    def read(self, cells: Indices, out: Bytes, /) -> None:
        if self._store is None:
            out[:] = 0
        else:
            self._store.read(cells, out)

    def origins(self, cells: Indices, /) -> Origins:
        if self._store is None:
            return Origins(None, np.full(len(cells), NO_CELL, np.int64))
        return cast("LocatedStore", self._store).origins(cells)

    def write(self, cells: Indices, rows: Bytes, /) -> None:
        if self._store is None:
            self._store = self._decide(rows)
        self._store.write(cells, rows)

    def refuse_too_large(self, rows: Bytes) -> bool:
        """What the store that it has become does, if it does."""
        check = getattr(self._store, "refuse_too_large", None)
        return check is not None and bool(check(rows))

    def stored_nbytes(self) -> int:
        return 0 if self._store is None else self._store.stored_nbytes()

    def holds(self, cells: Indices, /) -> NDArray[np.bool_]:
        return np.ones(len(cells), np.bool_) if self._store is None else self._store.holds(cells)

    def clear(self) -> None:
        if self._store is not None:
            self._store.clear()

    def state(self) -> State:
        if self._store is None:
            return State({"is_chosen": False})
        return State({"is_chosen": True, "choice": self._decide.choice()}).put("store", self._store.state())

    def restore(self, state: State, /) -> None:
        if state.fact("is_chosen", bool):
            self._store = self._decide.repeat(state.part("choice"))
            self._store.restore(state.part("store"))
