"""``ring``: a fixed number of bytes, first in, first out, by rows."""

from __future__ import annotations

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

    def _write(self, place: int, data: Bytes) -> None:
        self._bytes[place : place + len(data)] = data

    def _parameters(self) -> dict[str, Scalar]:
        return {"capacity": self._capacity}

    def _index_nbytes(self) -> int:
        return super()._index_nbytes() + self._queue.nbytes

    def _store(self, cells: Indices, payloads: Bytes, lengths: Indices) -> None:
        starts, cut = self._plan(lengths, len(payloads))
        tail = starts.item(-1) + lengths.item(-1)
        oldest = tail - self._capacity
        # Emptied first: a cell about to be replaced must not count as evicted when its old payload is overtaken.
        before = self._starts[cells], self._lengths[cells].astype(np.int64)
        self._forget(cells)
        self._make_room(oldest)
        try:
            self._write(starts.item(0) % self._capacity, payloads[:cut])
            if cut < len(payloads):
                self._write((tail - len(payloads) + cut) % self._capacity, payloads[cut:])
        except HeapFullError:
            # Part of the row may have been written over what was overtaken. What is still queued is intact.
            kept = before[0] >= self._queue.oldest(self._tail)
            self._record(cells[kept], before[0][kept], before[1][kept])
            raise
        self._record(cells, starts, lengths)
        self._queue.push(cells, starts, self._starts)
        self._tail = tail

    def _plan(self, lengths: Indices, total: int) -> tuple[Indices, int]:
        """Virtual positions of a row, and how many of its bytes lie before the end of the ring."""
        if total > self._capacity:
            hint = "One row must fit as a whole: give the heap a larger capacity."
            raise HeapFullError(self.label, total, self._capacity, hint)
        ends = lengths.cumsum()
        starts = ends - lengths + self._tail
        left = -self._tail % self._capacity or self._capacity
        if total <= left:
            return starts, total
        # A payload is contiguous, so the one that would cross the end starts over at the beginning.
        split = int(ends.searchsorted(left, side="right"))
        cut = ends.item(split - 1) if split else 0
        if total + left - cut > self._capacity:
            split = cut = 0  # the gap would make the row overtake itself: move all of it
        starts[split:] += left - cut
        return starts, cut

    def _make_room(self, oldest: int) -> None:
        """Evict every row that has a payload before position ``oldest``."""
        if not self._queue.begins_before(oldest):
            return
        overtaken, starts, rows = self._queue.pop_before(oldest)
        alive = self._starts[overtaken] == starts
        cells = overtaken[alive]
        if not len(cells):
            return
        before = self._live
        self._forget(cells)
        self._evicted = Evictions(
            self._evicted.rows + len(np.unique(rows[alive])),
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
