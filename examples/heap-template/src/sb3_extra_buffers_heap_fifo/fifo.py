"""``fifo``: payloads in a dictionary, first in, first out."""

from __future__ import annotations

from collections import OrderedDict
from itertools import accumulate, takewhile

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import HeapFullError, ParameterError
from sb3_extra_buffers.heaps import HeapPlugin, TableHeap, hookimpl
from sb3_extra_buffers.memory import Bytes, Indices
from sb3_extra_buffers.registry import Scalar


class FifoHeap(TableHeap):
    """One array for each payload. A full heap drops its oldest rows.

    :param cells: number of cells
    :param capacity: bytes of payloads that the heap holds at most
    """

    label = "fifo"

    def __init__(self, cells: int, capacity: int) -> None:
        super().__init__(cells)
        if isinstance(capacity, bool) or not isinstance(capacity, int) or capacity < 1:
            allowed = "it must be a number of bytes, at least 1"
            raise ParameterError(f"heap {self.label!r}", "capacity", capacity, allowed)
        self._capacity = capacity
        #: By position, oldest first: the number of the row, the cell and the payload. Positions only grow.
        self._payloads: OrderedDict[int, tuple[int, int, Bytes]] = OrderedDict()
        self._end = 0

    @property
    def capacity(self) -> int:
        return self._capacity

    def view(self, start: int, length: int, /) -> memoryview:
        _, _, payload = self._payloads.get(start, (0, 0, np.empty(0, np.uint8)))
        if not 0 < length <= len(payload):
            raise self._outside(start, length)
        return memoryview(payload)[:length]

    def addresses(self, starts: Indices, lengths: Indices, /) -> NDArray[np.uint64]:
        views = (self.view(*place) for place in zip(starts.tolist(), lengths.tolist()))
        return np.array([np.frombuffer(view, np.uint8).ctypes.data for view in views], np.uint64)

    def clear(self) -> None:
        super().clear()
        self._payloads.clear()

    def refuse_too_large(self, lengths: list[int]) -> None:
        """Refuse a row that does not even fit an empty heap."""
        if sum(lengths) > self._capacity:
            hint = "Give the heap a larger capacity."
            raise HeapFullError(self.label, sum(lengths), self._capacity, hint, never_fits=True)

    def _parameters(self) -> dict[str, Scalar]:
        return {"capacity": self._capacity}

    def _store(self, cells: list[int], payloads: memoryview, lengths: list[int]) -> None:
        self.refuse_too_large(lengths)
        ends = list(accumulate(lengths))
        parts = np.split(np.frombuffer(payloads, np.uint8).copy(), ends[:-1])  # until here, nothing has changed
        row, self._end = self._end, self._end + len(cells)
        starts = list(range(row, self._end))
        for start in self._forget(cells):  # replaced, not evicted
            self._payloads.pop(start, None)
        while self.live + ends[-1] > self._capacity:
            self._drop_oldest_row()
        if len(self._payloads) > self.cells:
            alive = [item for item in self._payloads.items() if self._is_alive(item[0])]
            self._payloads = OrderedDict(alive)
        for cell, start, part in zip(cells, starts, parts):
            self._payloads[start] = row, cell, part
        self._record(cells, starts, lengths)

    def _is_alive(self, start: int) -> bool:
        """Whether the table leads to a payload. A write that was interrupted may leave others."""
        cell = self._payloads[start][1]
        return bool(self._lengths[cell]) and self._starts.item(cell) == start

    def _drop_oldest_row(self) -> None:
        row = next(iter(self._payloads.values()))[0]
        starts = list(takewhile(lambda start: self._payloads[start][0] == row, self._payloads))
        cells = [self._payloads[start][1] for start in starts if self._is_alive(start)]
        if cells:
            self._evict(cells, rows=1)  # empties the cells, and counts
        for start in starts:
            del self._payloads[start]

    def _written(self) -> tuple[Indices, NDArray[np.bool_]]:
        """The cells in the order of writing, and which of them begin a row: so that copies evict the same rows."""
        written = [self._payloads[start][:2] for start in self._payloads if self._is_alive(start)]
        rows, cells = np.array(written, np.int64).reshape(-1, 2).T
        return cells, np.diff(rows, prepend=-1) > 0


@hookimpl
def sb3_extra_buffers_heap() -> HeapPlugin:
    return HeapPlugin(
        protocol=1,
        factory=FifoHeap,
        summary="A dictionary of payloads; evicts the oldest rows",
        required=("capacity",),
    )
