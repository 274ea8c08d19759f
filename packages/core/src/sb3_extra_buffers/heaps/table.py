"""What all heaps here share: the table of cells, the staging area, the checks and the pickled form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import HeapFullError, HeapStateError, ParameterError
from sb3_extra_buffers.heaps.protocol import Evictions
from sb3_extra_buffers.heaps.state import State, StateError, used, within
from sb3_extra_buffers.memory import Bytes, Indices, untouched
from sb3_extra_buffers.registry import Scalar

_MAX_PAYLOAD = int(np.iinfo(np.int32).max)
#: A staging area up to this size is kept from row to row.
_MAX_STAGING = 1 << 22


class TableHeap(ABC):
    """A heap with its index in two flat arrays; subclasses decide where the bytes go.

    Payloads are encoded into a staging area and copied from there. The copy is of compressed bytes and disappears
    beside the encoding; in exchange no heap has to set aside a worst case that hardly ever happens.

    :param cells: how many cells there are
    """

    label: ClassVar[str]

    def __init__(self, cells: int) -> None:
        if isinstance(cells, bool) or not isinstance(cells, (int, np.integer)) or cells < 1:
            raise ParameterError(f"heap {self.label!r}", "cells", cells, "it must be an integer of at least 1")
        try:
            # Cells that are never used take no memory: a length of 0 says that there is no payload.
            self._starts = untouched(int(cells), np.int64)
            self._lengths = untouched(int(cells), np.int32)
        except (MemoryError, ValueError) as error:
            raise HeapFullError(self.label, 12 * int(cells), 0, "The index takes 12 bytes for each cell.") from error
        # The same memory, for one cell at a time: an item of a memoryview is had in half the time.
        self._start_of, self._length_of = memoryview(self._starts), memoryview(self._lengths)
        self._live = 0
        self._evicted = Evictions()
        self._staging = np.empty(0, np.uint8)
        self._reserved: tuple[list[int], int] | None = None

    @property
    def cells(self) -> int:
        return len(self._starts)

    @property
    def live(self) -> int:
        return self._live

    @property
    def evicted(self) -> Evictions:
        return self._evicted

    @property
    def moves(self) -> int | None:
        """How often payloads of cells that were not written have moved. Whoever remembers addresses looks here.

        Of a heap that does not count, nobody remembers any.
        """
        return None

    @property
    @abstractmethod
    def capacity(self) -> int: ...

    @property
    def nbytes(self) -> int:
        return self.capacity + self._index_nbytes()

    def _index_nbytes(self) -> int:
        used = np.flatnonzero(self._lengths)  # behind the last of them, no memory was ever touched
        count = int(used[-1]) + 1 if len(used) else 0
        return count * (self._starts.itemsize + self._lengths.itemsize) + self._staging.nbytes

    # A row is short (one cell per environment) and written at every step. So it is written as lists of plain integers,
    # cell by cell: a cell costs about as much as one call of numpy, and arrays would need twenty of these. They would
    # win from some 30 cells on, where both disappear beside the encoding.

    def reserve(self, cells: Indices, worst_case_bytes: int, /) -> Bytes:
        cells = self._as_cells(cells)
        numbers: list[int] = cells.tolist()
        count = len(self._starts)
        for number in numbers:
            if not 0 <= number < count:
                raise self._no_such_cells(cells)
        if len(set(numbers)) != len(numbers):
            raise HeapStateError(self.label, f"reserve cells {numbers}", "a cell is named twice in one row")
        if not isinstance(worst_case_bytes, (int, np.integer)) or worst_case_bytes < 0:
            allowed = "it must be an integer of at least 0"
            raise ParameterError(f"heap {self.label!r}", "worst_case_bytes", worst_case_bytes, allowed)
        if len(self._staging) < worst_case_bytes:
            try:
                self._staging = np.empty(worst_case_bytes, np.uint8)
            except (MemoryError, ValueError) as error:
                raise HeapFullError(self.label, worst_case_bytes, 0, "Reserve fewer cells at a time.") from error
        self._reserved = numbers, worst_case_bytes
        return self._staging[:worst_case_bytes]

    def commit(self, lengths: Indices, /) -> None:
        if self._reserved is None:
            raise HeapStateError(self.label, "commit", "nothing is reserved", "Call reserve() first.")
        cells, room = self._reserved
        lengths = np.asarray(lengths)
        sizes: list[int] = lengths.tolist()
        if lengths.shape != (len(cells),) or (lengths.dtype.kind not in "iu" and sizes) or not _plausible(sizes, room):
            raise HeapStateError(
                self.label,
                f"commit payloads of {sizes} bytes",
                f"{len(cells)} cells and {room} bytes are reserved",
                f"Lengths must be integers, one per cell, from 1 to {_MAX_PAYLOAD}, and fit the reservation, "
                "which is still open.",
            )
        self._reserved = None
        staging = self._staging
        if len(staging) > _MAX_STAGING:
            self._staging = np.empty(0, np.uint8)  # a bulk load must not hold its worst case for ever
        if sizes:
            self._store(cells, memoryview(staging)[: sum(sizes)], sizes)

    def locate(self, cells: Indices, /) -> tuple[Indices, Indices]:
        cells = self._as_cells(cells)
        # Seen as unsigned, a negative number is a huge one: one comparison finds both.
        if cells.size and int(cells.view(np.uint64).max()) >= len(self._starts):
            raise self._no_such_cells(cells)
        lengths = self._lengths[cells].astype(np.int64)
        return np.where(lengths, self._starts[cells], -1), lengths

    def clear(self) -> None:
        self._lengths.fill(0)
        self._live = 0
        self._evicted = Evictions()
        self._reserved = None

    @abstractmethod
    def view(self, start: int, length: int, /) -> memoryview: ...

    @abstractmethod
    def addresses(self, starts: Indices, lengths: Indices, /) -> NDArray[np.uint64]: ...

    @abstractmethod
    def _store(self, cells: list[int], payloads: memoryview, lengths: list[int]) -> None:
        """Copy the payloads to where they will live and record them; on failure leave the table as it was."""

    @abstractmethod
    def _parameters(self) -> dict[str, Scalar]:
        """What the constructor needs besides the number of cells."""

    def _record(self, cells: list[int], starts: list[int], lengths: list[int]) -> None:
        start_of, length_of, live = self._start_of, self._length_of, self._live
        for cell, start, length in zip(cells, starts, lengths):
            start_of[cell] = start
            length_of[cell] = length
            live += length
        self._live = live

    def _forget(self, cells: list[int]) -> list[int]:
        """Empty these cells and return where their payloads were; -1 for those that had none."""
        start_of, length_of, live = self._start_of, self._length_of, self._live
        starts = []
        for cell in cells:
            length = length_of[cell]
            starts.append(start_of[cell] if length else -1)
            live -= length
            start_of[cell] = -1  # of no payload that a ring still has in its queue
            length_of[cell] = 0
        self._live = live
        return starts

    def _as_cells(self, cells: Indices) -> Indices:
        cells = np.asarray(cells)
        if cells.ndim != 1 or (cells.dtype.kind not in "iu" and cells.size):
            found = f"an array of {cells.dtype} with shape {cells.shape}"
            raise ParameterError(
                f"heap {self.label!r}", "cells", found, "it must be a one-dimensional array of integers"
            )
        return cells.astype(np.int64, copy=False)

    def _no_such_cells(self, cells: Indices) -> ParameterError:
        wrong = int(cells.min()) if cells.min() < 0 else int(cells.max())
        return ParameterError(f"heap {self.label!r}", "cells", wrong, f"cells are numbered 0 to {self.cells - 1}")

    def _outside(self, start: int, length: int) -> HeapStateError:
        found = "the cell has no payload" if start < 0 else "no live payload is there"
        hint = "It was never written, or was evicted since it was located."
        return HeapStateError(self.label, f"read {length} bytes at {start}", found, hint)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.cells} cells: {self.live} bytes live, capacity {self.capacity}>"

    # What is saved holds all payloads where they are, so that another heap goes on exactly like this one.

    def state(self) -> State:
        """What another heap of as many cells needs in order to become this one."""
        raise HeapStateError(self.label, "save", f"{type(self).__name__} has no state()", "Use another heap.")

    def restore(self, state: State) -> None:
        """Become what another heap was; this one must be new.

        :param state: of a heap of the same kind, with the same parameters
        """
        state.same(cells=self.cells)
        state.begin_of(starts=self._starts, lengths=self._lengths)
        count = max(len(state.arrays["starts"]), len(state.arrays["lengths"]))
        starts, lengths = self._starts[:count], self._lengths[:count]
        within("lengths", lengths, 0, _MAX_PAYLOAD)
        self._evicted = Evictions(*state.numbers("evicted", 3))
        self._live = int(lengths.sum(dtype=np.int64))
        self._adopt(state, starts, lengths)

    def _table_state(self) -> State:
        lengths = used(self._lengths)
        evicted = [self._evicted.rows, self._evicted.cells, self._evicted.nbytes]
        arrays = {"starts": self._starts[: len(lengths)], "lengths": lengths}
        return State({"cells": self.cells, "evicted": evicted}, arrays)

    def _adopt(self, state: State, starts: Indices, lengths: Indices) -> None:
        """Take over payloads, or refuse what does not fit. Where one gets another position, it is written there.

        :param state: what was saved
        :param starts: the beginning of the table: where payloads are
        :param lengths: their sizes; 0 where there is none
        """
        raise StateError(f"{type(self).__name__} cannot take over {len(starts)} payloads ({state}, {lengths})")

    # The pickled form holds the live payloads, packed, and nothing of the memory around them.

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.cells, self._parameters(), self._snapshot())

    def _snapshot(self) -> dict[str, Any]:
        cells = np.flatnonzero(self._lengths)
        cells = cells[np.argsort(self._starts[cells], kind="stable")]  # in a ring, positions tell the age
        starts, lengths = self.locate(cells)
        return {"order": cells, "lengths": lengths, "payloads": self._join(starts, lengths), "evicted": self._evicted}

    def _join(self, starts: Indices, lengths: Indices) -> bytes:
        """Payloads, one behind the other."""
        return b"".join(self.view(*place) for place in zip(starts.tolist(), lengths.tolist()))

    def _resume(self, snapshot: dict[str, Any]) -> None:
        if len(snapshot["order"]):
            self._store(snapshot["order"].tolist(), memoryview(snapshot["payloads"]), snapshot["lengths"].tolist())
        self._evicted = snapshot["evicted"]


def _plausible(sizes: list[int], room: int) -> bool:
    total = 0
    for size in sizes:
        if not 1 <= size <= _MAX_PAYLOAD:
            return False
        total += size
    return total <= room


def _restore(kind: type[TableHeap], cells: int, parameters: dict[str, Any], snapshot: dict[str, Any]) -> TableHeap:
    heap = kind(cells, **parameters)
    heap._resume(snapshot)
    return heap
