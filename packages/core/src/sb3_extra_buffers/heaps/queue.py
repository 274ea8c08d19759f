"""The order in which a ring was written, without a Python object per payload."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.views import Indices

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
        start_at, begins_at, stop, tail = self._start_at, self._begins_at, self._head, self._tail
        row, rows = 0, []
        while stop < tail and (start_at[stop] < position or not begins_at[stop]):
            row += begins_at[stop]
            rows.append(row)
            stop += 1
        gone = slice(self._head, stop)
        self._head = stop
        return self._cells[gone], self._starts[gone], np.array(rows, np.int64)

    def rows_alive(self, table: Indices) -> NDArray[np.bool_]:
        """For each living entry, oldest first: whether it begins a row."""
        queued = slice(self._head, self._tail)
        alive = table[self._cells[queued]] == self._starts[queued]
        begins: NDArray[np.bool_] = np.diff(np.cumsum(self._begins[queued])[alive], prepend=0) > 0
        return begins

    def set_rows(self, begins: Any) -> None:
        """Say where rows begin, for a queue that was refilled in one go."""
        self._begins[self._head : self._tail] = begins

    def _drop_dead(self, table: Indices) -> None:
        queued = slice(self._head, self._tail)
        begins = self.rows_alive(table)
        alive = table[self._cells[queued]] == self._starts[queued]
        count = len(begins)
        self._cells[:count] = self._cells[queued][alive]
        self._starts[:count] = self._starts[queued][alive]
        self._begins[:count] = begins
        self._head, self._tail = 0, count
