"""``SparseStore``: rows for a few cells out of many."""

from __future__ import annotations

import numpy as np

from sb3_extra_buffers.heaps.state import State, StateError, within
from sb3_extra_buffers.memory import Bytes, Indices
from sb3_extra_buffers.stores.deferred import resolve
from sb3_extra_buffers.stores.protocol import NO_CELL, BoundedStore, ObservationStore, Origins

_NO_SLOT = -1


class SparseStore:
    """Rows for the few cells that need one.

    A heap drops a payload only when its cell is written again. With a heap cell for each cell, payloads that are no
    longer needed would add up. Slots that are reused keep the total at what is needed at one time.

    :param store: holds the rows; it has as many cells as may need a row, in the worst case all
    """

    def __init__(self, store: ObservationStore) -> None:
        self._built = self._store = store
        self._slots = np.full(store.cells, _NO_SLOT, np.int32 if store.cells < 2**31 else np.int64)
        self._free: list[int] = []
        self._opened = 0

    @property
    def overhead(self) -> int:
        """Bytes of memory besides payloads."""
        return self._store.overhead + self._slots.nbytes

    def write(self, cells: Indices, rows: Bytes) -> None:
        """Give these cells content and, where they have none, a slot."""
        slots = self._slots[cells].astype(np.int64)
        new = slots == _NO_SLOT
        count = int(np.count_nonzero(new))
        if self._opened + count > self._store.cells + len(self._free):
            self._find_free()
        kept = max(0, len(self._free) - count)
        reused = self._free[kept:]
        opened = self._opened + count - len(reused)
        slots[new] = [*reused, *range(self._opened, opened)]
        self._store.write(slots, np.ascontiguousarray(rows))
        # Only now: a write that failed must not take a slot. A slot that an interrupt loses here is found again later.
        self._free, self._opened = self._free[:kept], opened
        self._slots[cells] = slots
        self._store = resolve(self._store)

    def _find_free(self) -> None:
        """Find the slots that no cell has: interrupts may have lost some."""
        self._free = np.setdiff1d(np.arange(self._opened), self._slots).tolist()

    def refuse_too_large(self, rows: Bytes) -> bool:
        """Refuse rows that could never be written; return whether that took long."""
        store = self._store.active
        return isinstance(store, BoundedStore) and store.refuse_too_large(rows)

    def read(self, cells: Indices, out: Bytes) -> None:
        """Read the cells that have a slot into their rows of ``out``; leave the other rows alone."""
        slots = self._slots[cells]
        known = slots != _NO_SLOT
        if known.any():
            rows = np.empty((int(np.count_nonzero(known)), self._store.row_nbytes), np.uint8)
            self._store.read(slots[known].astype(np.int64), rows)
            out[known] = rows

    def origins(self, cells: Indices) -> Origins:
        """Where the content of the cells is that have a slot."""
        slots = self._slots[cells].astype(np.int64)
        known = slots != _NO_SLOT
        found: Origins = self._store.origins(slots[known])  # type: ignore[attr-defined]
        located = np.full(len(cells), NO_CELL, np.int64)
        located[known] = found.cells
        return Origins(found.codec, located)

    def free(self, cells: Indices) -> None:
        """Take the slots of these cells back."""
        if len(self._free) == self._opened:
            return  # no cell has one
        slots = self._slots[cells]
        self._slots[cells] = _NO_SLOT
        self._free = self._free + slots[slots != _NO_SLOT].tolist()

    def stored_nbytes(self) -> int:
        """Bytes of all slots, free ones included."""
        return self._store.stored_nbytes()

    def clear(self) -> None:
        """Take all slots back."""
        self._store.clear()
        self._slots.fill(_NO_SLOT)
        self._free, self._opened = [], 0

    def state(self) -> State:
        """What another one on an equal heap needs in order to become this one."""
        arrays = {"slots": self._slots, "free": np.array(self._free, np.int64)}
        return State({"opened": self._opened}, arrays).put("store", self._built.state())

    def restore(self, state: State) -> None:
        """Become what another one was."""
        self._built.restore(state.part("store"))
        self._store = resolve(self._built)
        self._opened = state.number("opened", 0, len(self._slots))
        state.copy_to(slots=self._slots)
        free = state.array("free", np.int64, None)
        for name, numbers in (("slots", self._slots), ("free", free)):
            within(name, numbers, _NO_SLOT if name == "slots" else 0, self._opened - 1)
        taken = self._slots[self._slots != _NO_SLOT]
        if len(np.unique(np.concatenate([taken, free]))) != len(taken) + len(free):
            raise StateError("two cells have one slot")
        self._free = free.tolist()
