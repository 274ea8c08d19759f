"""``ring``: a fixed number of bytes, first in, first out, by rows."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import HeapFullError, ParameterError
from sb3_extra_buffers.heaps.anonymous import allocate
from sb3_extra_buffers.heaps.plugin import HeapPlugin
from sb3_extra_buffers.heaps.protocol import Evictions
from sb3_extra_buffers.heaps.queue import WriteQueue
from sb3_extra_buffers.heaps.table import TableHeap
from sb3_extra_buffers.registry import Scalar, hookimpl
from sb3_extra_buffers.views import Bytes, Indices, view_bytes


class RingHeap(TableHeap):
    """Payloads in a byte ring: what is written goes to the end, and what it overtakes is evicted, whole rows at a time.

    Positions are virtual: they only grow, and the place in memory is the position modulo the capacity. So «full» and
    «empty» cannot be confused, a stale position is recognised as such, and no byte is ever moved.

    :param cells: how many cells there are
    :param capacity: the budget for payloads, in bytes
    """

    label = "ring"

    def __init__(self, cells: int, capacity: int) -> None:
        super().__init__(cells)
        if isinstance(capacity, bool) or not isinstance(capacity, (int, np.integer)) or capacity < 1:
            raise ParameterError(
                f"heap {self.label!r}", "capacity", capacity, "it must be a number of bytes, at least 1"
            )
        self._capacity = int(capacity)
        self._bytes = self._allocate()
        self._view = view_bytes(self.label, "bytes", self._bytes)
        self._base = np.uint64(self._bytes.ctypes.data)
        self._tail = 0
        self._queue = WriteQueue(self.cells)

    @property
    def capacity(self) -> int:
        return self._capacity

    def view(self, start: int, length: int, /) -> memoryview:
        place = start % self._capacity
        alive = max(0, self._tail - self._capacity) <= start and start + length <= self._tail
        if length < 1 or not alive or place + length > self._capacity:
            raise self._outside(start, length)
        return self._view[place : place + length]

    def addresses(self, starts: Indices, lengths: Indices, /) -> NDArray[np.uint64]:
        oldest = max(0, self._tail - self._capacity)
        places = starts % self._capacity
        # Not «start + length > tail»: a huge length would overflow and look small.
        outside = (starts < oldest) | (starts > self._tail)
        outside |= (lengths > self._tail - starts) | (lengths > self._capacity - places)
        outside |= lengths < 1
        if outside.any():
            bad = int(outside.argmax())
            raise self._outside(int(starts[bad]), int(lengths[bad]))
        return places.astype(np.uint64) + self._base

    def clear(self) -> None:
        super().clear()
        self._tail = 0
        self._queue.clear()

    def _allocate(self) -> Bytes:
        return allocate(self.label, self._capacity)

    def _write(self, place: int, data: memoryview) -> None:
        self._view[place : place + len(data)] = data

    def _parameters(self) -> dict[str, Scalar]:
        return {"capacity": self._capacity}

    def _index_nbytes(self) -> int:
        return super()._index_nbytes() + self._queue.nbytes

    def _store(self, cells: list[int], payloads: memoryview, lengths: list[int]) -> None:
        starts, cut = self._plan(lengths, len(payloads))
        tail = starts[-1] + lengths[-1]
        old_lengths = [self._length_of[cell] for cell in cells]
        # Emptied first: a cell about to be replaced must not count as evicted when its old payload is overtaken.
        old_starts = self._forget(cells)
        self._make_room(tail - self._capacity)
        try:
            self._write(starts[0] % self._capacity, payloads[:cut])
            if cut < len(payloads):
                self._write((tail - len(payloads) + cut) % self._capacity, payloads[cut:])
        except HeapFullError:
            # Part of the row may have been written over what was overtaken. What is still queued is intact.
            intact = self._queue.oldest(self._tail)
            for cell, start, length in zip(cells, old_starts, old_lengths):
                if start >= intact:
                    self._record([cell], [start], [length])
            raise
        self._record(cells, starts, lengths)
        self._queue.push(cells, starts, self._starts)
        self._tail = tail

    def _plan(self, lengths: list[int], total: int) -> tuple[list[int], int]:
        """Virtual positions of a row, and how many of its bytes lie before the end of the ring."""
        if total > self._capacity:
            hint = "One row must fit as a whole: give the heap a larger capacity."
            raise HeapFullError(self.label, total, self._capacity, hint)
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

    def _make_room(self, oldest: int) -> None:
        """Evict every row that has a payload before position ``oldest``."""
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
