"""``RewrittenStore``: for who writes the same content to the same cells twice in a row."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.heaps.state import State
from sb3_extra_buffers.memory import Bytes, Indices
from sb3_extra_buffers.stores.origins import LocatedStore, Origins
from sb3_extra_buffers.stores.protocol import Store
from sb3_extra_buffers.stores.waiting import WaitingRows


class RewrittenStore:
    """Skips what the last write has stored already.

    With ``optimize_memory_usage``, Stable-Baselines3 writes each observation twice to one place: as what a transition
    leads to, and as what the following one starts from. Comparing is far cheaper than compressing again.

    :param store: what is written to
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.cells = store.cells
        self.row_nbytes = store.row_nbytes
        self._last = WaitingRows(store.row_nbytes)

    @property
    def codec(self) -> str:
        return self._store.codec

    @property
    def overhead(self) -> int:
        return self._store.overhead + self._last.nbytes

    def read(self, cells: Indices, out: Bytes, /) -> None:
        self._store.read(cells, out)

    def origins(self, cells: Indices, /) -> Origins:
        return cast("LocatedStore", self._store).origins(cells)

    def write(self, cells: Indices, rows: Bytes, /) -> None:
        if not np.array_equal(cells, self._last.cells):
            self._store.write(cells, rows)
        elif self._last.equals(rows):
            return
        else:
            new = (rows != self._last.rows).any(axis=1)
            self._store.write(cells[new], rows[new])
        self._last.put(cells, rows)

    def stored_nbytes(self) -> int:
        return self._store.stored_nbytes()

    def holds(self, cells: Indices, /) -> NDArray[np.bool_]:
        return self._store.holds(cells)

    def clear(self) -> None:
        self._store.clear()
        self._last.drop()

    def state(self) -> State:
        return State().put("store", self._store.state()).put("last", self._last.state())

    def restore(self, state: State, /) -> None:
        self._store.restore(state.part("store"))
        self._last.restore(state.part("last"), self.cells)
