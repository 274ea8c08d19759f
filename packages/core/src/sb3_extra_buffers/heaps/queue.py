"""The order in which a ring was written, without a Python object per payload."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.heaps.state import State, StateError, within
from sb3_extra_buffers.memory import Indices

#: Room for entries whose cell has been written again since, as a fraction of the cells.
_SLACK = 4


class WriteQueue:
    """One entry per payload, oldest first: its cell, its position, and whether it begins a row.

    An entry whose cell has moved on is dead. Dead entries are dropped when the queue is full, all at once, so the cost
    per push is constant on average.

    :param cells: how many cells the heap has, and so how many entries can be alive
    """

    def __init__(self, cells: int) -> None:
        size = cells + max(cells // _SLACK, 1024)
        self._cells: NDArray[Any] = np.empty(size, np.int32 if cells <= np.iinfo(np.int32).max else np.int64)
        self._starts = np.empty(size, np.int64)
        self._begins = np.empty(size, np.bool_)
        # The same memory, for one entry at a time, as in the table of the heap.
        self._cell_at, self._start_at = memoryview(self._cells), memoryview(self._starts)
        self._begins_at = memoryview(self._begins)
        self._head = self._tail = 0
        self._last_cell = cells - 1

    @property
    def nbytes(self) -> int:
        return self._cells.nbytes + self._starts.nbytes + self._begins.nbytes

    def clear(self) -> None:
        self._head = self._tail = 0

    def push(self, cells: Sequence[int], starts: Sequence[int], table: Indices) -> None:
        """Append a row.

        :param cells: its cells
        :param starts: their positions
        :param table: the present position of every cell, by which dead entries are told from living ones
        """
        if self._tail + len(cells) > len(self._cells):
            self._drop_dead(table)
        cell_at, start_at, begins_at, new = self._cell_at, self._start_at, self._begins_at, self._tail
        for cell, start in zip(cells, starts):
            cell_at[new] = cell
            start_at[new] = start
            begins_at[new] = False
            new += 1
        begins_at[self._tail] = True
        self._tail = new

    def oldest(self, default: int) -> int:
        """The position of the oldest entry, or ``default`` if there is none."""
        return self._start_at[self._head] if self._head < self._tail else default

    def begins_before(self, position: int) -> bool:
        """Whether the oldest entry lies before ``position``."""
        return self._head < self._tail and self._start_at[self._head] < position

    def pop_before(self, position: int) -> tuple[Indices, Indices, Indices]:
        """Remove every row that has a payload before ``position``; return cells, positions and row numbers."""
        cells, starts, rows = self.before(position)
        self._head += len(cells)
        return cells, starts, rows

    def before(self, position: int) -> tuple[Indices, Indices, Indices]:
        """Every row that has a payload before ``position``: cells, positions and row numbers."""
        start_at, begins_at, stop, tail = self._start_at, self._begins_at, self._head, self._tail
        row, rows = 0, []
        while stop < tail and (start_at[stop] < position or not begins_at[stop]):
            row += begins_at[stop]
            rows.append(row)
            stop += 1
        found = slice(self._head, stop)
        return self._cells[found], self._starts[found], np.array(rows, np.int64)

    def rows_alive(self, table: Indices) -> NDArray[np.bool_]:
        """For each living entry, oldest first: whether it begins a row."""
        queued = slice(self._head, self._tail)
        alive = table[self._cells[queued]] == self._starts[queued]
        begins: NDArray[np.bool_] = np.diff(np.cumsum(self._begins[queued])[alive], prepend=0) > 0
        return begins

    def set_rows(self, begins: Any) -> None:
        """Say where rows begin, for a queue that was refilled in one go."""
        self._begins[self._head : self._tail] = begins

    def positions(self) -> Indices:
        """Where payloads begin, oldest first."""
        return self._starts[self._head : self._tail].copy()

    def state(self) -> State:
        """All entries. Those that were removed are among them, so that what was saved stays where it is."""
        queued = slice(0, self._tail)
        arrays = {"cells": self._cells[queued], "starts": self._starts[queued], "begins": self._begins[queued]}
        return State({"head": self._head}, arrays)

    def restore(self, state: State, tail: int) -> None:
        """Become what another queue was, of a ring that has been written up to ``tail``."""
        room = len(self._cells)
        cells = state.array("cells", self._cells.dtype, None)
        self._tail = len(cells)
        self._head = state.number("head", 0, self._tail)
        if self._tail > room:
            raise StateError(f"the queue has {self._tail} entries, there is room for {room}")
        self._cells[: self._tail] = cells
        self._starts[: self._tail] = starts = state.array("starts", np.int64, self._tail)
        self._begins[: self._tail] = state.array("begins", np.bool_, self._tail)
        within("cells", cells, 0, self._last_cell)
        within("starts", starts, 0, tail)

    def _drop_dead(self, table: Indices) -> None:
        queued = slice(self._head, self._tail)
        begins = self.rows_alive(table)
        alive = table[self._cells[queued]] == self._starts[queued]
        count = len(begins)
        self._cells[:count] = self._cells[queued][alive]
        self._starts[:count] = self._starts[queued][alive]
        self._begins[:count] = begins
        self._head, self._tail = 0, count
