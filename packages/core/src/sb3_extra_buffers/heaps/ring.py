"""``ring``: a fixed number of bytes, first in, first out, by rows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import HeapFullError, ParameterError
from sb3_extra_buffers.heaps.block import Block
from sb3_extra_buffers.heaps.plugin import HeapPlugin
from sb3_extra_buffers.heaps.restore import SavedBytes, covering
from sb3_extra_buffers.heaps.state import Log, State, StateError, within
from sb3_extra_buffers.heaps.table import TableHeap
from sb3_extra_buffers.memory import Bytes, Indices
from sb3_extra_buffers.registry import Scalar, hookimpl

#: Room for entries whose cell has been written again since, as a fraction of the cells.
_SLACK = 4


class RingHeap(TableHeap):
    """Payloads in a byte ring: new rows are written over the oldest ones, which are evicted whole.

    Positions are virtual: they only grow, and the offset in memory is the position modulo the capacity. So full and
    empty cannot be confused, a stale position is detected, and no byte is ever moved.

    :param cells: number of cells
    :param capacity: bytes of payloads that the heap holds at most
    """

    label = "ring"
    #: What to do if a row is larger than the ring.
    _row_hint = "One row must fit as a whole: give the heap a larger capacity."

    def __init__(self, cells: int, capacity: int) -> None:
        super().__init__(cells)
        if isinstance(capacity, bool) or not isinstance(capacity, (int, np.integer)) or capacity < 1:
            raise ParameterError(
                f"heap {self.label!r}", "capacity", capacity, "it must be a number of bytes, at least 1"
            )
        self._capacity = int(capacity)
        self._block = self._allocate()
        self._tail = 0
        self._queue = WriteQueue(self.cells)
        self._log = 0  # how often it was cleared: positions start over
        #: Loaded payloads stay in their files until they are evicted.
        self._saved: SavedBytes | None = None

    @property
    def moves(self) -> int | None:
        return 0

    @property
    def capacity(self) -> int:
        return self._capacity

    def view(self, start: int, length: int, /) -> memoryview:
        place, is_saved = start % self._capacity, self._saved is not None and start < self._saved.end
        alive = self._oldest() <= start and start + length <= self._tail
        # Saved payloads may be those of a ring of another capacity, which wrapped elsewhere.
        if length < 1 or not alive or (place + length > self._capacity and not is_saved):
            raise self._outside(start, length)
        if self._saved is not None and is_saved:
            return self._saved.view(start, length)
        return self._block.view(place, length)

    def addresses(self, starts: Indices, lengths: Indices, /) -> NDArray[np.uint64]:
        places = starts % self._capacity
        # Not start + length > tail: a huge length would overflow and look small.
        crossing = lengths > self._capacity - places
        if self._saved is not None:
            crossing &= starts >= self._saved.end
        outside = (starts < self._oldest()) | (starts > self._tail)
        outside |= (lengths > self._tail - starts) | (lengths < 1) | crossing
        if outside.any():
            bad = int(outside.argmax())
            raise self._outside(int(starts[bad]), int(lengths[bad]))
        found = places.astype(np.uint64) + np.uint64(self._block.address)
        if self._saved is not None:
            old = starts < self._saved.end
            found[old] = self._saved.addresses(starts[old])
        return found

    def refuse_too_large(self, lengths: list[int]) -> None:
        """Refuse a row that does not fit an empty ring.

        :param lengths: sizes of its payloads
        """
        total = sum(lengths)
        if total > self._capacity:
            raise HeapFullError(self.label, total, self._capacity, self._row_hint, never_fits=True)

    def clear(self) -> None:
        super().clear()
        self._tail = 0
        self._queue.clear()
        self._log += 1
        self._leave_saved()

    def _oldest(self) -> int:
        """The first position that can be read."""
        oldest = max(0, self._tail - self._capacity)
        # Payloads loaded into a smaller ring are all readable until the next row is written.
        return oldest if self._saved is None else min(oldest, self._queue.oldest(self._tail))

    def _allocate(self) -> Block:
        return Block.anonymous(self.label, self._capacity)

    def _write(self, place: int, data: memoryview) -> None:
        self._block.write(place, data)

    def _parameters(self) -> dict[str, Scalar]:
        return {"capacity": self._capacity}

    def _index_nbytes(self) -> int:
        return super()._index_nbytes() + self._queue.nbytes

    def _store(self, cells: list[int], payloads: memoryview, lengths: list[int]) -> None:
        starts, cut = self._plan(lengths, len(payloads))
        tail = starts[-1] + lengths[-1]
        self._check_room(cells, tail - self._capacity)
        old_lengths = [self._length_of[cell] for cell in cells]
        # Emptied first: a cell that is replaced must not count as evicted.
        old_starts = self._forget(cells)
        self._make_room(tail - self._capacity)
        try:
            self._write(starts[0] % self._capacity, payloads[:cut])
            if cut < len(payloads):
                self._write((tail - len(payloads) + cut) % self._capacity, payloads[cut:])
        except HeapFullError:
            # Part of the row may have been written over evicted payloads. Everything that is still queued is intact.
            self._take_back(cells, old_starts, old_lengths)
            raise
        self._record(cells, starts, lengths)
        self._queue.push(cells, starts, self._starts)
        self._tail = tail

    def _plan(self, lengths: list[int], total: int) -> tuple[list[int], int]:
        """Positions of a row, and how many of its bytes are before the end of the ring."""
        RingHeap.refuse_too_large(self, [total])
        bounds = list(accumulate(lengths, initial=self._tail))
        end = self._tail - self._tail % self._capacity + self._capacity
        if bounds[-1] <= end:
            return bounds[:-1], total
        # A payload is contiguous: the one that would cross the end is placed at the beginning.
        split = bisect_right(bounds, end) - 1
        if total + end - bounds[split] > self._capacity:
            split = 0  # with this gap the row would overwrite itself: move all of it
        gap = end - bounds[split]
        return bounds[:split] + [bound + gap for bound in bounds[split:-1]], bounds[split] - self._tail

    def _check_room(self, cells: list[int], oldest: int) -> None:
        """Called before anything changes: rings that refuse rows instead of evicting raise here."""

    def _take_back(self, cells: list[int], starts: list[int], lengths: list[int]) -> None:
        """Give cells the payloads that they had before a row that failed, as far as they are intact."""
        intact = self._queue.oldest(self._tail)
        for cell, start, length in zip(cells, starts, lengths):
            if start >= intact:
                self._record([cell], [start], [length])

    def _make_room(self, oldest: int) -> None:
        """Evict every row that has a payload before position ``oldest``."""
        if self._saved is not None and oldest >= self._saved.end:
            self._leave_saved()
        if not self._queue.begins_before(oldest):
            return
        overtaken, starts, rows = self._queue.pop_before(oldest)
        cells, lost_rows = [], set()
        for cell, start, row in zip(overtaken.tolist(), starts.tolist(), rows.tolist()):
            if self._start_of[cell] == start:
                cells.append(cell)
                lost_rows.add(row)
        if cells:
            self._evict(cells, len(lost_rows))

    def state(self) -> State:
        found, begin = self._table_state(), self._queue.oldest(self._tail)
        found.facts |= {"log": self._log, "begin": begin, "tail": self._tail, "capacity": self._capacity}
        found.logs.append(Log(str(self._log), begin, self._tail, self._bytes, self._queue.positions()))
        return found.put("queue", self._queue.state())

    def _bytes(self, begin: int, end: int) -> list[Bytes]:
        """The bytes from one position to another, gaps included, in pieces."""
        saved, found = self._saved, []
        if saved is not None and begin < saved.end:
            found += saved.cut(begin, min(end, saved.end))
            begin = min(end, saved.end)
        while begin < end:
            place = begin % self._capacity
            count = min(end - begin, self._capacity - place)
            found.append(np.frombuffer(self._block.view(place, count), np.uint8))
            begin += count
        return found

    def restore(self, state: State) -> None:
        starts, lengths = self._restore_table(state)
        held = np.flatnonzero(lengths)
        starts, lengths = starts[held], lengths[held].astype(np.int64)
        state.number("capacity", 1, 1 << 62)
        self._log, self._tail = state.number("log", 0, 1 << 62), state.number("tail", 0, 1 << 62)
        begin = state.number("begin", 0, self._tail)
        self._queue.restore(state.part("queue"), self._tail)
        if ((starts < begin) | (starts > self._tail) | (lengths > self._tail - starts)).any():
            raise StateError("a payload lies outside of the ring")
        self._keep(SavedBytes(covering(state.pieces.get(str(self._log), ()), begin, self._tail)), starts, lengths)

    def _keep(self, saved: SavedBytes, starts: Indices, lengths: Indices) -> None:
        """Take over saved bytes, which stay in their files."""
        if len(starts):
            saved.check(starts, lengths)
            self._saved = saved

    def _leave_saved(self) -> None:
        """Drop the loaded payloads: all of them were evicted."""
        self._saved = None

    def _written(self) -> tuple[Indices, NDArray[np.bool_]]:
        return super()._written()[0], self._queue.rows_alive(self._starts)  # positions grow with the age

    def _resume(self, snapshot: dict[str, Any]) -> None:
        if len(snapshot["order"]):
            payloads = memoryview(snapshot["payloads"])
            self._store(snapshot["order"].tolist(), payloads, snapshot["lengths"].tolist())
            self._queue.set_rows(snapshot["rows"])
        self._evicted = snapshot["evicted"]


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
        :param table: the present position of every cell, which distinguishes live entries from dead ones
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


@hookimpl
def sb3_extra_buffers_heap() -> HeapPlugin:
    return HeapPlugin(
        protocol=1,
        factory=RingHeap,
        summary="A fixed number of bytes; evicts the oldest rows",
        required=("capacity",),
    )
