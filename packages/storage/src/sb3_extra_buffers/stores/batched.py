"""``BatchedStore``: the newest cells wait uncompressed, and are compressed together."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.heaps.state import State, StateError, within
from sb3_extra_buffers.memory import Bytes, Indices
from sb3_extra_buffers.stores.origins import NO_CELL, LocatedStore, Origins
from sb3_extra_buffers.stores.protocol import Store
from sb3_extra_buffers.stores.waiting import copy_matching


class BatchedStore:
    """Collects cells until there are enough for a batch.

    Between two steps of a training run, environments and networks push the codec out of the caches, so compressing one
    observation at a time costs about twice what it costs in a batch.

    A batch that cannot be stored stays where it is: nothing is lost, and the write that needed the room fails.

    :param store: where batches go
    :param batch: how many cells make a batch
    """

    def __init__(self, store: Store, batch: int) -> None:
        self._store = store
        self.cells = store.cells
        self.row_nbytes = store.row_nbytes
        self._rows = np.empty((batch, store.row_nbytes), np.uint8)
        self._waiting: list[int] = []
        self._is_waiting = np.zeros(store.cells, np.bool_)

    @property
    def codec(self) -> str:
        return self._store.codec

    @property
    def overhead(self) -> int:
        unused = self._rows.nbytes - self._waiting_nbytes()
        return self._store.overhead + unused + self._is_waiting.nbytes

    def read(self, cells: Indices, out: Bytes, /) -> None:
        waiting = self._is_waiting[cells]
        if not waiting.any():
            self._store.read(cells, out)
            return
        if not waiting.all():
            # Rows of cells that wait are filled in below; until then any cell that does not wait will do.
            self._store.read(np.where(waiting, cells[waiting.argmin()], cells), out)
        copy_matching(np.array(self._waiting), self._rows, cells, out)

    def origins(self, cells: Indices, /) -> Origins:
        waiting = self._is_waiting[cells]
        found = cast("LocatedStore", self._store).origins(cells[~waiting])
        located = np.full(len(cells), NO_CELL, np.int64)
        located[~waiting] = found.cells
        if not waiting.any():
            return Origins(found.codec, located)
        rows = np.empty((int(waiting.sum()), self.row_nbytes), np.uint8)
        copy_matching(np.array(self._waiting), self._rows, cells[waiting], rows)
        return Origins(found.codec, located, [(np.flatnonzero(waiting), rows)])

    def write(self, cells: Indices, rows: Bytes, /) -> None:
        count = len(self._waiting)
        if count + len(cells) > len(self._rows) or self._is_waiting[cells].any():
            self._flush()
            count = 0
        if len(cells) > len(self._rows):
            self._store.write(cells, rows)
            return
        self._rows[count : count + len(cells)] = rows
        self._waiting += cells.tolist()
        self._is_waiting[cells] = True

    def stored_nbytes(self) -> int:
        return self._store.stored_nbytes() + self._waiting_nbytes()

    def holds(self, cells: Indices, /) -> NDArray[np.bool_]:
        return self._is_waiting[cells] | self._store.holds(cells)

    def clear(self) -> None:
        self._store.clear()
        self._drop()

    def state(self) -> State:
        waiting = len(self._waiting)
        arrays: dict[str, NDArray[Any]] = {"cells": np.array(self._waiting, np.int64), "rows": self._rows[:waiting]}
        return State({}, arrays).put("store", self._store.state())

    def restore(self, state: State, /) -> None:
        self._store.restore(state.part("store"))
        cells = state.array("cells", np.int64, None)
        within("cells", cells, 0, self.cells - 1)
        if len(cells) > len(self._rows) or len(np.unique(cells)) != len(cells):
            raise StateError(f"{len(cells)} cells wait, there is room for {len(self._rows)}")
        self._rows[: len(cells)] = state.array("rows", np.uint8, len(cells), self.row_nbytes)
        self._waiting = cells.tolist()
        self._is_waiting[cells] = True

    def __getstate__(self) -> dict[str, Any]:
        # Not flushed: the heap, which others share, may have been pickled already.
        return {**self.__dict__, "_rows": (len(self._rows), self._rows[: len(self._waiting)].copy())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        batch, waiting = state["_rows"]
        self.__dict__.update(state, _rows=np.empty((batch, state["row_nbytes"]), np.uint8))
        self._rows[: len(waiting)] = waiting

    def _waiting_nbytes(self) -> int:
        return len(self._waiting) * self.row_nbytes

    def _flush(self) -> None:
        if self._waiting:
            self._store.write(np.array(self._waiting), self._rows[: len(self._waiting)])
            self._drop()

    def _drop(self) -> None:
        self._is_waiting[self._waiting] = False
        self._waiting.clear()
