"""``DeferredStore``: holds the first writes until the data say how to store them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import HeapFullError
from sb3_extra_buffers.heaps.state import State, StateError, within
from sb3_extra_buffers.memory import Bytes, Indices
from sb3_extra_buffers.stores.pending import copy_matching
from sb3_extra_buffers.stores.protocol import NO_CELL, LocatedStore, ObservationStore, Origins


class Write(NamedTuple):
    """A write that is held back.

    :param is_next: whether it is of next observations
    :param cells: the cells
    :param rows: their content
    """

    is_next: bool
    cells: Indices
    rows: Bytes

    def apply(self, store: ObservationStore) -> None:
        """Repeat the write."""
        if self.is_next:
            store.write(self.cells, None, self.rows)
        else:
            store.write(self.cells, self.rows)


class Chooser(Protocol):
    """Chooses a store; an object rather than a closure, so that a buffer pickles before the choice."""

    def choose(self, held: list[Write], write: Write, /) -> ObservationStore | None:
        """Return a new store, or ``None`` to wait for more data.

        :param held: the writes so far
        :param write: the newest write
        """

    def forget(self) -> None:
        """Forget what belongs to the held writes, which are dropped."""

    def describe(self) -> str:
        """What is known before the choice."""

    def state(self, chosen: ObservationStore | None, held: list[Write], /) -> State:
        """The choice with the state of the chosen store, or the held writes."""

    def restore(self, state: State, /) -> tuple[ObservationStore | None, list[Write]]:
        """The inverse of :meth:`state`."""


class DeferredStore:
    """A store whose kind depends on the data. Its holder replaces it by :attr:`chosen` once there is one; see
    :func:`resolve`.

    :param cells: number of cells
    :param row_nbytes: size of one observation
    :param chooser: makes the choice
    """

    def __init__(self, cells: int, row_nbytes: int, chooser: Chooser) -> None:
        self.cells = cells
        self.row_nbytes = row_nbytes
        self._chooser = chooser
        self._held: list[Write] = []
        #: The chosen store. It stays the same.
        self.chosen: ObservationStore | None = None

    @property
    def active(self) -> ObservationStore | None:
        return None if self.chosen is None else self.chosen.active

    @property
    def overhead(self) -> int:
        return 0 if self.chosen is None else self.chosen.overhead

    @property
    def explanation(self) -> str:
        """What was chosen, against what, and what other settings would give; empty before the choice."""
        return getattr(self._chooser, "explanation", "")

    def describe(self) -> str:
        return self._chooser.describe() if self.chosen is None else self.chosen.describe()

    def write(self, cells: Indices, obs: Bytes | None, next_obs: Bytes | None = None, /) -> None:
        if obs is not None:
            self._write(Write(False, cells, obs))
        if next_obs is not None:
            self._write(Write(True, cells, next_obs))

    def _write(self, write: Write) -> None:
        if self.chosen is None:
            store = self._chooser.choose(self._held, write)
            if store is None:
                self._held = [*self._held, Write(write.is_next, write.cells.copy(), write.rows.copy())]
                return
            problem: HeapFullError | None = None
            for held in self._held:
                try:
                    held.apply(store)
                except HeapFullError as error:  # noqa: PERF203 - each write may fail by itself
                    if _lacks_memory(error):
                        raise  # the held writes stay: memory that is refused now may be granted later
                    # These rows are lost; later ones may fit.
                    problem = problem or replace(error, never_fits=False)  # said of them, not of what is written now
            # Published only now: whatever stops the replay, the held writes are still here.
            self.chosen, self._held = store, []
            if problem is not None:
                raise problem
        write.apply(self.chosen)

    def read(self, cells: Indices, out: Bytes | None, next_out: Bytes | None = None, /) -> None:
        if self.chosen is not None:
            self.chosen.read(cells, out, next_out)
            return
        for target, is_next in ((out, False), (next_out, True)):
            if target is not None:
                target[:] = 0
                for write in self._held:
                    if write.is_next == is_next:
                        copy_matching(write.cells, write.rows, cells, target)

    def origins(self, cells: Indices, is_next: bool = False, /) -> Origins:
        if isinstance(self.chosen, LocatedStore):
            return self.chosen.origins(cells, is_next)
        rows = np.empty((len(cells), self.row_nbytes), np.uint8)
        self.read(cells, *((None, rows) if is_next else (rows, None)))
        in_memory = [(np.arange(len(cells)), rows)] if self._held else []
        return Origins(None, np.full(len(cells), NO_CELL, np.int64), in_memory)

    def stored_nbytes(self) -> int:
        if self.chosen is not None:
            return self.chosen.stored_nbytes()
        return sum(write.rows.nbytes for write in self._held)

    def holds(self, cells: Indices, /) -> NDArray[np.bool_]:
        return np.ones(len(cells), np.bool_) if self.chosen is None else self.chosen.holds(cells)

    def clear(self) -> None:
        self._held = []
        self._chooser.forget()
        if self.chosen is not None:
            self.chosen.clear()

    def state(self) -> State:
        return self._chooser.state(self.chosen, self._held)

    def restore(self, state: State, /) -> None:
        self.chosen, self._held = self._chooser.restore(state)


def _lacks_memory(error: BaseException | None) -> bool:
    """Whether a heap was full because the system refused memory, not because of a limit of its own."""
    while isinstance(error, HeapFullError):  # which is a MemoryError itself
        error = error.__cause__
    return isinstance(error, MemoryError)


def resolve(store: ObservationStore) -> ObservationStore:
    """The chosen store, if a deferred one has been decided; otherwise the store itself."""
    return store.chosen if type(store) is DeferredStore and store.chosen is not None else store


def held_state(held: list[Write], row_nbytes: int) -> State:
    """Held writes as a state."""
    facts = {"planes": [int(write.is_next) for write in held], "sizes": [len(write.cells) for write in held]}
    no_cells, no_rows = np.empty(0, np.int64), np.empty((0, row_nbytes), np.uint8)
    arrays = {
        "cells": np.concatenate([no_cells, *(write.cells for write in held)]),
        "rows": np.concatenate([no_rows, *(write.rows for write in held)]),
    }
    return State(facts, arrays)


def held_from(state: State, cells: int, row_nbytes: int, planes: int) -> list[Write]:
    """Held writes from a state, for a store with so many cells and planes (2 with next observations)."""
    sizes = state.numbers("sizes")
    kinds = state.numbers("planes", len(sizes))
    if min(sizes, default=0) < 0 or not {*kinds} <= {*range(planes)}:
        raise StateError("held writes do not fit the store")
    found = state.array("cells", np.int64, sum(sizes))
    within("cells", found, 0, cells - 1)
    rows = state.array("rows", np.uint8, len(found), row_nbytes)
    edges = np.cumsum(sizes)[:-1].tolist() if sizes else []
    pairs = zip(np.split(found, edges), np.split(rows, edges)) if sizes else ()
    return [Write(bool(kind), some.copy(), part.copy()) for kind, (some, part) in zip(kinds, pairs)]
