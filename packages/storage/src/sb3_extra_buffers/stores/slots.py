"""``SlotStore``: few cells out of many. Cells get a slot when written and give it back when they are freed."""

from __future__ import annotations

from typing import cast

import numpy as np

from sb3_extra_buffers.heaps.state import State, StateError, within
from sb3_extra_buffers.memory import Bytes, Indices
from sb3_extra_buffers.stores.origins import NO_CELL, LocatedStore, Origins
from sb3_extra_buffers.stores.protocol import Store

_NO_SLOT = -1


class SlotStore:
    """Rows for the few cells that need one.

    A heap drops a payload only when its cell is written again. If every cell had its place there, those that were
    needed once, somewhere, would add up; slots that are used again keep it at what is needed at one time.

    :param store: where the rows go; as many cells as may need one, in the worst case all
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._slots = np.full(store.cells, _NO_SLOT, np.int32 if store.cells < 2**31 else np.int64)
        self._free: list[int] = []
        self._opened = 0

    @property
    def overhead(self) -> int:
        """Bytes of memory for keeping track."""
        return self._store.overhead + self._slots.nbytes

    def write(self, cells: Indices, rows: Bytes) -> None:
        """Give these cells content and, where they have none, a slot."""
        new = cells[self._slots[cells] == _NO_SLOT]
        slots = self._slots[cells].astype(np.int64)
        reused = self._free[max(0, len(self._free) - len(new)) :]
        fresh = range(self._opened, self._opened + len(new) - len(reused))
        slots[slots == _NO_SLOT] = [*reused, *fresh]
        self._store.write(slots, np.ascontiguousarray(rows))
        # Only now: a write that failed must not have taken anything.
        del self._free[len(self._free) - len(reused) :]
        self._opened += len(fresh)
        self._slots[cells] = slots

    def refuse_too_large(self, rows: Bytes) -> bool:
        """Refuse rows that could never be written, and say whether that took long; a store without a limit has none."""
        check = getattr(self._store, "refuse_too_large", None)
        return check is not None and bool(check(rows))

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
        found = cast("LocatedStore", self._store).origins(slots[known])
        located = np.full(len(cells), NO_CELL, np.int64)
        located[known] = found.cells
        return Origins(found.codec, located)

    def free(self, cells: Indices) -> None:
        """Take the slots of these cells back."""
        if len(self._free) == self._opened:
            return  # nobody has one
        slots = self._slots[cells]
        self._free += slots[slots != _NO_SLOT].tolist()
        self._slots[cells] = _NO_SLOT

    def stored_nbytes(self) -> int:
        """How many bytes all slots take, those that wait to be used again included."""
        return self._store.stored_nbytes()

    def clear(self) -> None:
        """Take all slots back."""
        self._store.clear()
        self._slots.fill(_NO_SLOT)
        self._free.clear()
        self._opened = 0

    def state(self) -> State:
        """What another one on an equal heap needs in order to become this one."""
        arrays = {"slots": self._slots, "free": np.array(self._free, np.int64)}
        return State({"opened": self._opened}, arrays).put("store", self._store.state())

    def restore(self, state: State) -> None:
        """Become what another one was."""
        self._store.restore(state.part("store"))
        self._opened = state.number("opened", 0, len(self._slots))
        state.copy_to(slots=self._slots)
        free = state.array("free", np.int64, None)
        for name, numbers in (("slots", self._slots), ("free", free)):
            within(name, numbers, _NO_SLOT if name == "slots" else 0, self._opened - 1)
        taken = self._slots[self._slots != _NO_SLOT]
        if len(np.unique(np.concatenate([taken, free]))) != len(taken) + len(free):
            raise StateError("two cells have one slot")
        self._free = free.tolist()
