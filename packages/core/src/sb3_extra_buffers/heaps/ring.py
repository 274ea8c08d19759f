"""``ring``: a fixed number of bytes, first in, first out, by rows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import HeapFullError
from sb3_extra_buffers.heaps.block import Block, SavedBytes, covering
from sb3_extra_buffers.heaps.plugin import HeapPlugin
from sb3_extra_buffers.heaps.state import Log, State, StateError, within
from sb3_extra_buffers.heaps.table import TableHeap
from sb3_extra_buffers.memory import NOTHING, Attribute, Bytes, Columns, Indices, publish
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
            raise self._refused("capacity", capacity, "it must be a number of bytes, at least 1")
        self._capacity = int(capacity)
        self._block = self._allocate()
        self._queue = WriteQueue(self.cells)
        self._log = 0  # how often it was cleared: positions start over
        #: Loaded payloads stay in their files until they are evicted.
        self._saved: SavedBytes | None = None

    @property
    def moves(self) -> int | None:
        # None as long as reading may find damage in a file: stores then ask for what they read, and not for all.
        return 0 if self._saved is None or self._saved.unread is None else None

    @property
    def capacity(self) -> int:
        return self._capacity

    @property
    def _tail(self) -> int:
        """The position after the newest payload."""
        return self._totals[1]

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
            found[old] = self._saved.addresses(starts[old], lengths[old])
        return found

    def refuse_too_large(self, lengths: list[int]) -> None:
        """Refuse a row that does not fit an empty ring."""
        total = sum(lengths)
        if total > self._capacity:
            raise HeapFullError(self.label, total, self._capacity, self._row_hint, never_fits=True)

    def _clearing(self) -> list[Attribute]:
        emptied = (self._queue, "ends", memoryview(np.zeros(2, np.int64)))
        return [emptied, (self, "_log", self._log + 1), *self._leaving_saved()]

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

    def _store(self, cells: list[int], payloads: memoryview, lengths: list[int], also: Columns = NOTHING) -> None:
        starts, cut = self._plan(lengths, len(payloads))
        tail = starts[-1] + lengths[-1]
        self._check_room(cells, tail - self._capacity)
        # What the row is written over is evicted first. Nothing reads beyond the tail, so if writing fails, or is
        # interrupted, everything that is still queued is intact.
        self._make_room(cells, tail - self._capacity)
        self._write(starts[0] % self._capacity, payloads[:cut])
        if cut < len(payloads):
            self._write((tail - len(payloads) + cut) % self._capacity, payloads[cut:])
        end = self._queue.append(cells, starts, self._starts)
        ends = [self._queue.ends, self._totals, *also[0]], [1, 1, *also[1]], [end, tail, *also[2]]
        self._record(cells, starts, lengths, ends)

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

    def _make_room(self, cells: list[int], oldest: int) -> None:
        """Evict every row that has a payload before position ``oldest``; ``cells`` are replaced, not evicted."""
        saved, queue = self._saved, self._queue
        attributes = self._leaving_saved() if saved is not None and oldest >= saved.end else []
        if not attributes and not queue.begins_before(oldest):
            return
        overtaken, starts, rows = queue.overtaken(oldest)
        gone, evicted, lost_rows = [], [], set()
        for cell, start, row in zip(overtaken, starts, rows):
            if self._start_of[cell] == start:
                gone.append(cell)
                if cell not in cells:
                    evicted.append(cell)
                    lost_rows.add(row)
        if evicted:
            attributes.append(self._counting(evicted, len(lost_rows)))
        head = [queue.ends], [0], [queue.ends[0] + len(rows)]
        self._record(gone, [-1] * len(gone), [0] * len(gone), head, attributes)

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
        self._log, self._totals[1] = state.number("log", 0, 1 << 62), state.number("tail", 0, 1 << 62)
        begin = state.number("begin", 0, self._tail)
        self._queue.restore(state.part("queue"), self._tail)
        if ((starts < begin) | (starts > self._tail) | (lengths > self._tail - starts)).any():
            raise StateError("a payload lies outside of the ring")
        saved = SavedBytes(pieces := covering(state.pieces.get(str(self._log), ()), begin, self._tail))
        self._keep(saved, starts, lengths)
        if self._saved is not saved:  # copied
            saved.contents = [piece.content for piece in pieces]

    def _keep(self, saved: SavedBytes, starts: Indices, lengths: Indices) -> None:
        """Take over saved bytes, which stay in their files."""
        if len(starts):
            saved.check(starts, lengths)
            self._saved = saved

    def _leaving_saved(self) -> list[Attribute]:
        """The changes that drop the loaded payloads: all of them were evicted."""
        return [(self, "_saved", None)]

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
        #: The first entry, and the end of the last one, as items, which are published together with others.
        self.ends = memoryview(np.zeros(2, np.int64))
        self._last_cell = cells - 1

    @property
    def nbytes(self) -> int:
        return self._cells.nbytes + self._starts.nbytes + self._begins.nbytes

    def append(self, cells: Sequence[int], starts: Sequence[int], table: Indices) -> int:
        """Write a row after the last entry, where nothing reads it, and return the end that makes it part of the queue.

        :param cells: its cells
        :param starts: their positions
        :param table: the present position of every cell, which distinguishes live entries from dead ones
        """
        if self.ends[1] + len(cells) > len(self._cells):
            self._drop_dead(table)
        cell_at, start_at, begins_at, new = self._cell_at, self._start_at, self._begins_at, self.ends[1]
        is_first = True
        for cell, start in zip(cells, starts):
            cell_at[new] = cell
            start_at[new] = start
            begins_at[new] = is_first
            is_first = False
            new += 1
        return new

    def oldest(self, default: int) -> int:
        """The position of the oldest entry, or ``default`` if there is none."""
        head, tail = self.ends
        return self._start_at[head] if head < tail else default

    def begins_before(self, position: int) -> bool:
        """Whether the oldest entry lies before ``position``."""
        head, tail = self.ends
        return head < tail and self._start_at[head] < position

    def overtaken(self, position: int) -> tuple[list[int], list[int], list[int]]:
        """Every row that has a payload before ``position``: cells, positions and row numbers."""
        start_at, begins_at, (head, tail) = self._start_at, self._begins_at, self.ends
        stop, row, rows = head, 0, []
        while stop < tail and (start_at[stop] < position or not begins_at[stop]):
            row += begins_at[stop]
            rows.append(row)
            stop += 1
        return self._cell_at[head:stop].tolist(), start_at[head:stop].tolist(), rows

    def rows_alive(self, table: Indices) -> NDArray[np.bool_]:
        """For each living entry, oldest first: whether it begins a row."""
        queued = slice(*self.ends)
        alive = table[self._cells[queued]] == self._starts[queued]
        begins: NDArray[np.bool_] = np.diff(np.cumsum(self._begins[queued])[alive], prepend=0) > 0
        return begins

    def set_rows(self, begins: Any) -> None:
        """Say where rows begin, for a queue that was refilled in one go."""
        self._begins[slice(*self.ends)] = begins

    def positions(self) -> Indices:
        """Where payloads begin, oldest first."""
        return self._starts[slice(*self.ends)].copy()

    def state(self) -> State:
        """All entries. Those that were removed are among them, so that what was saved stays where it is."""
        queued = slice(self.ends[1])
        arrays = {"cells": self._cells[queued], "starts": self._starts[queued], "begins": self._begins[queued]}
        return State({"head": self.ends[0]}, arrays)

    def restore(self, state: State, tail: int) -> None:
        """Become what another queue was, of a ring that has been written up to ``tail``."""
        room, cells = len(self._cells), state.array("cells", self._cells.dtype, None)
        count = len(cells)
        head = state.number("head", 0, count)
        if count > room:
            raise StateError(f"the queue has {count} entries, there is room for {room}")
        self._cells[:count] = cells
        self._starts[:count] = starts = state.array("starts", np.int64, count)
        self._begins[:count] = state.array("begins", np.bool_, count)
        self.ends[0], self.ends[1] = head, count
        within("cells", cells, 0, self._last_cell)
        within("starts", starts, 0, tail)

    def _drop_dead(self, table: Indices) -> None:
        queued = slice(*self.ends)
        begins = self.rows_alive(table)
        alive = table[self._cells[queued]] == self._starts[queued]
        kept = slice(len(begins))
        entries = self._cells[queued][alive], self._starts[queued][alive], begins, np.array([0, len(begins)])
        targets = self._cells, self._starts, self._begins, np.asarray(self.ends)
        publish(targets, (kept, kept, kept, slice(2)), entries)


@hookimpl
def sb3_extra_buffers_heap() -> HeapPlugin:
    summary = "A fixed number of bytes; evicts the oldest rows"
    return HeapPlugin(protocol=1, factory=RingHeap, summary=summary, required=("capacity",))
