"""``ring``: a fixed number of bytes, first in, first out, by rows."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate, groupby
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import HeapFullError, ParameterError
from sb3_extra_buffers.heaps.adopting import covering
from sb3_extra_buffers.heaps.block import Block
from sb3_extra_buffers.heaps.plugin import HeapPlugin
from sb3_extra_buffers.heaps.protocol import Evictions
from sb3_extra_buffers.heaps.queue import WriteQueue
from sb3_extra_buffers.heaps.saved_bytes import SavedBytes
from sb3_extra_buffers.heaps.state import Log, State, StateError
from sb3_extra_buffers.heaps.table import TableHeap
from sb3_extra_buffers.memory import Bytes, Indices
from sb3_extra_buffers.registry import Scalar, hookimpl


class RingHeap(TableHeap):
    """Payloads in a byte ring: what is written goes to the end, and what it overtakes is evicted, whole rows at a time.

    Positions are virtual: they only grow, and the place in memory is the position modulo the capacity. So «full» and
    «empty» cannot be confused, a stale position is recognised as such, and no byte is ever moved.

    :param cells: how many cells there are
    :param capacity: the budget for payloads, in bytes
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
        self._log = 0  # how often it was cleared: positions begin anew
        #: What was loaded stays in its file until it is overtaken.
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
        # What was saved may be that of a ring of another capacity, whose end was elsewhere.
        if length < 1 or not alive or (place + length > self._capacity and not is_saved):
            raise self._outside(start, length)
        if self._saved is not None and is_saved:
            return self._saved.view(start, length)
        return self._block.view(place, length)

    def addresses(self, starts: Indices, lengths: Indices, /) -> NDArray[np.uint64]:
        places = starts % self._capacity
        # Not «start + length > tail»: a huge length would overflow and look small.
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
        """Refuse a row that would not fit even if it were alone.

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
        """Before which position nothing can be read."""
        oldest = max(0, self._tail - self._capacity)
        # What was loaded into a smaller ring is all there until the next row is written.
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
        # Emptied first: a cell about to be replaced must not count as evicted when its old payload is overtaken.
        old_starts = self._forget(cells)
        self._make_room(tail - self._capacity)
        try:
            self._write(starts[0] % self._capacity, payloads[:cut])
            if cut < len(payloads):
                self._write((tail - len(payloads) + cut) % self._capacity, payloads[cut:])
            self._written(cells, starts, lengths, payloads)
        except HeapFullError:
            # Part of the row may have been written over what was overtaken. What is still queued is intact.
            self._take_back(cells, old_starts, old_lengths)
            raise
        self._record(cells, starts, lengths)
        self._queue.push(cells, starts, self._starts)
        self._tail = tail

    def _plan(self, lengths: list[int], total: int) -> tuple[list[int], int]:
        """Virtual positions of a row, and how many of its bytes lie before the end of the ring."""
        RingHeap.refuse_too_large(self, [total])
        bounds = list(accumulate(lengths, initial=self._tail))
        end = self._tail - self._tail % self._capacity + self._capacity
        if bounds[-1] <= end:
            return bounds[:-1], total
        # A payload is contiguous, so the one that would cross the end starts over at the beginning.
        split = bisect_right(bounds, end) - 1
        if total + end - bounds[split] > self._capacity:
            split = 0  # the gap would make the row overtake itself: move all of it
        gap = end - bounds[split]
        return bounds[:split] + [bound + gap for bound in bounds[split:-1]], bounds[split] - self._tail

    def _check_room(self, cells: list[int], oldest: int) -> None:
        """Called before anything changes, for rings that would rather refuse a row than drop others for it."""

    def _written(self, cells: list[int], starts: list[int], lengths: list[int], payloads: memoryview) -> None:
        """Called when the bytes of a row are in place, and nothing says so yet; may refuse it with HeapFullError."""

    def _take_back(self, cells: list[int], starts: list[int], lengths: list[int]) -> None:
        """Give cells what they had before a row that failed, as far as nothing was written over it."""
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
        if not cells:
            return
        before = self._live
        self._forget(cells)
        self._evicted = Evictions(
            self._evicted.rows + len(lost_rows),
            self._evicted.cells + len(cells),
            self._evicted.nbytes + before - self._live,
        )

    def state(self) -> State:
        found, begin = self._table_state(), self._queue.oldest(self._tail)
        found.facts |= {"log": self._log, "begin": begin, "tail": self._tail, "capacity": self._capacity}
        found.logs.append(Log(str(self._log), begin, self._tail, self._bytes, self._queue.positions()))
        return found.put("queue", self._queue.state())

    def _bytes(self, begin: int, end: int) -> list[Bytes]:
        """What is at these positions, which may be those of gaps, in pieces."""
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

    def _adopt(self, state: State, starts: Indices, lengths: Indices) -> None:
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
        """Take over bytes that were saved. They stay in their file."""
        if len(starts):
            saved.check(starts, lengths)
            self._saved = saved

    def _is_elsewhere(self, starts: Indices, lengths: Indices) -> bool:
        """Whether payloads that were saved are those of a ring of another capacity, whose end was elsewhere."""
        if not len(starts):
            return False
        oldest = min(int(starts.min()), self._queue.oldest(self._tail))
        return oldest < self._tail - self._capacity or bool((starts % self._capacity + lengths > self._capacity).any())

    def _pour(self, saved: SavedBytes) -> bool:
        """Write every row again, and say whether there was room for all of them."""
        cells, starts, rows = (column.copy() for column in self._queue.before(np.iinfo(np.int64).max))
        alive = self._starts[cells] == starts
        if not np.array_equal(np.sort(cells[alive]), np.flatnonzero(self._lengths)):
            raise StateError("the order of writing does not name every payload once")
        columns = [column[alive].tolist() for column in (rows, cells, starts, self._lengths[cells])]
        evicted = self._evicted
        self.clear()
        self._evicted = evicted
        for _, row in groupby(zip(*columns), itemgetter(0)):
            _, its_cells, places, sizes = zip(*row)
            self._store(list(its_cells), memoryview(b"".join(map(saved.view, places, sizes))), list(sizes))
        return self._evicted == evicted

    def _leave_saved(self) -> None:
        """Nothing that was loaded is needed any more."""
        self._saved = None

    def _snapshot(self) -> dict[str, object]:
        return {**super()._snapshot(), "rows": self._queue.rows_alive(self._starts)}

    def _resume(self, snapshot: dict[str, object]) -> None:
        super()._resume(snapshot)
        self._queue.set_rows(snapshot["rows"])


@hookimpl
def sb3_extra_buffers_heap() -> HeapPlugin:
    return HeapPlugin(
        protocol=1,
        factory=RingHeap,
        summary="A fixed number of bytes; evicts the oldest rows",
        required=("capacity",),
    )
