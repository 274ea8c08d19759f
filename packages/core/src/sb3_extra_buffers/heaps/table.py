"""``TableHeap``: a base for heaps, with the table of cells, the staging area, the checks, pickling and saving."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import astuple
from functools import partial
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import HeapFullError, HeapStateError, ParameterError
from sb3_extra_buffers.heaps.protocol import Evictions
from sb3_extra_buffers.heaps.state import State, StateError, used, within
from sb3_extra_buffers.memory import NOTHING, Attribute, Bytes, Columns, Indices, publish, untouched
from sb3_extra_buffers.registry import Scalar

_INT64 = np.dtype(np.int64)
_MAX_PAYLOAD = int(np.iinfo(np.int32).max)
#: A staging area up to this size is kept from row to row.
_MAX_STAGING = 1 << 22


class TableHeap(ABC):
    """A heap with its index in two flat arrays; subclasses decide where the bytes go.

    Payloads are encoded into a staging area and copied from there. Copying compressed bytes costs little compared to
    encoding them, and no heap has to set aside memory for the worst case.

    Subclasses implement ``capacity``, ``view``, ``addresses``, ``_store`` and ``_parameters``.
    The index is ``_starts`` and ``_lengths``: a cell has a payload if its length is not 0, and only then does its
    position mean anything.

    :param cells: number of cells
    """

    #: The name under which the heap is registered, for errors.
    label: ClassVar[str]

    def __init__(self, cells: int) -> None:
        if isinstance(cells, bool) or not isinstance(cells, (int, np.integer)) or cells < 1:
            raise self._refused("cells", cells, "it must be an integer of at least 1")
        try:
            # Cells that are never used take no memory. A length of 0 means that there is no payload.
            self._starts = untouched(int(cells), np.int64)
            self._lengths = untouched(int(cells), np.int32)
        except (MemoryError, ValueError) as error:
            raise HeapFullError(self.label, 12 * int(cells), 0, "The index takes 12 bytes for each cell.") from error
        # The same memory, for one cell at a time: reading an item of a memoryview takes half the time.
        self._start_of, self._length_of = memoryview(self._starts), memoryview(self._lengths)
        #: The size of all payloads, and the end of a ring: as items, which are published together with others.
        self._totals = memoryview(np.zeros(2, np.int64))
        self._evicted = Evictions()
        self._staging = np.empty(0, np.uint8)
        #: Cells, size and memory of the open reservation.
        self._reserved: tuple[list[int], int, Bytes] | None = None

    @property
    def cells(self) -> int:
        return len(self._starts)

    @property
    def live(self) -> int:
        return self._live

    @property
    def _live(self) -> int:
        return self._totals[0]

    @property
    def evicted(self) -> Evictions:
        return self._evicted

    @property
    def moves(self) -> int | None:
        """How often payloads of cells that were not written have moved; ``None`` if the heap does not count."""
        return None

    @property
    @abstractmethod
    def capacity(self) -> int: ...

    @property
    def nbytes(self) -> int:
        return self.capacity + self._index_nbytes()

    def _index_nbytes(self) -> int:
        used = np.flatnonzero(self._lengths)  # after the last of them, no memory was ever touched
        count = int(used[-1]) + 1 if len(used) else 0
        staging = self._staging if self._reserved is None else self._reserved[2]
        return count * (self._starts.itemsize + self._lengths.itemsize) + staging.nbytes

    # A row is short (one cell per environment) and written at every step. So it is written as lists of plain integers,
    # cell by cell: a cell costs about as much as one call of numpy, and arrays would need twenty such calls. Arrays are
    # faster from about 30 cells on, where both are negligible compared to encoding.

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
            raise self._refused("worst_case_bytes", worst_case_bytes, "it must be an integer of at least 0")
        staging = self._staging
        if len(staging) < worst_case_bytes:
            try:
                staging = np.empty(worst_case_bytes, np.uint8)
            except (MemoryError, ValueError) as error:
                raise HeapFullError(self.label, worst_case_bytes, 0, "Reserve fewer cells at a time.") from error
            if worst_case_bytes <= _MAX_STAGING:  # a bulk load must not keep its worst case
                self._staging = staging
        self._reserved = numbers, worst_case_bytes, staging
        return staging[:worst_case_bytes]

    def commit(self, lengths: Indices, /) -> None:
        if self._reserved is None:
            raise HeapStateError(self.label, "commit", "nothing is reserved", "Call reserve() first.")
        cells, room, staging = self._reserved
        lengths = np.asarray(lengths)
        sizes: list[int] = lengths.tolist()
        is_row = lengths.shape == (len(cells),) and (lengths.dtype.kind in "iu" or not sizes)
        total = sum(sizes) if is_row else 0
        if not is_row or total > room or (sizes and min(sizes) < 1) or (total > _MAX_PAYLOAD < max(sizes)):
            raise HeapStateError(
                self.label,
                f"commit payloads of {sizes} bytes",
                f"{len(cells)} cells and {room} bytes are reserved",
                f"Lengths must be integers, one per cell, from 1 to {_MAX_PAYLOAD}, and fit the reservation, "
                "which is still open.",
            )
        self._reserved = None
        if sizes:
            self._store(cells, memoryview(staging)[:total], sizes)

    def locate(self, cells: Indices, /) -> tuple[Indices, Indices]:
        cells = self._as_cells(cells)
        # As unsigned numbers, negative ones are huge: one comparison finds both.
        if cells.size and int(cells.view(np.uint64).max()) >= len(self._starts):
            raise self._no_such_cells(cells)
        lengths = self._lengths[cells].astype(np.int64)
        return np.where(lengths, self._starts[cells], -1), lengths

    def clear(self) -> None:
        emptied = [(self, "_evicted", Evictions()), (self, "_reserved", None)]
        cleared, everything = [self._lengths, np.asarray(self._totals)], [slice(None)] * 2
        publish(cleared, everything, [0, 0], [*emptied, *self._clearing()])

    def _clearing(self) -> list[Attribute]:
        """What else changes when the heap is cleared."""
        return []

    @abstractmethod
    def view(self, start: int, length: int, /) -> memoryview: ...

    @abstractmethod
    def addresses(self, starts: Indices, lengths: Indices, /) -> NDArray[np.uint64]: ...

    @abstractmethod
    def _store(self, cells: list[int], payloads: memoryview, lengths: list[int]) -> None:
        """Store the payloads of one row: copy them to where nothing is read, then :meth:`_record` them.

        On failure, raise ``HeapFullError`` and leave the table as it was. An interrupt may come between any two lines.

        :param cells: the cells of the row, each once
        :param payloads: their payloads, contiguous
        :param lengths: the sizes of the payloads, at least 1
        """

    @abstractmethod
    def _parameters(self) -> dict[str, Scalar]:
        """The arguments of the constructor besides ``cells``, so that a pickled heap can be created again."""

    # Each of these three ends in one call of C code, so that an interrupt comes before the change or after it.

    def _record(
        self,
        cells: list[int],
        starts: list[int],
        lengths: list[int],
        also: Columns = NOTHING,
        attributes: Sequence[Attribute] = (),
    ) -> None:
        """Give cells the positions and sizes of new payloads, in place of the old ones.

        :param also: further changes that are published together with these
        :param attributes: further changes, of attributes
        """
        count, length_of, live = len(cells), self._length_of, self._totals[0] + sum(lengths)
        for cell in cells:
            live -= length_of[cell]
        targets = [self._start_of] * count + [length_of] * count + [self._totals, *also[0]]
        publish(targets, cells + cells + [0, *also[1]], starts + lengths + [live, *also[2]], attributes)

    def _forget(self, cells: list[int], attributes: Sequence[Attribute] = ()) -> list[int]:
        """Empty these cells and return the positions of their payloads; -1 for those that had none."""
        starts = [self._start_of[cell] if self._length_of[cell] else -1 for cell in cells]
        # Position -1 matches no entry in the queue of a ring.
        self._record(cells, [-1] * len(cells), [0] * len(cells), attributes=attributes)
        return starts

    def _evict(self, cells: list[int], rows: int) -> list[int]:
        """Empty these cells in order to make room, and count them as evicted. Returns the positions of their payloads.

        :param cells: all of them have a payload
        :param rows: the number of rows that they belong to
        """
        return self._forget(cells, [self._counting(cells, rows)])

    def _counting(self, cells: list[int], rows: int) -> Attribute:
        """The change that counts cells with a payload as evicted."""
        nbytes, before = sum(map(self._length_of.__getitem__, cells)), self._evicted
        evicted = Evictions(before.rows + rows, before.cells + len(cells), before.nbytes + nbytes)
        return self, "_evicted", evicted

    def _as_cells(self, cells: Indices) -> Indices:
        cells = np.asarray(cells)
        if cells.ndim != 1 or (cells.dtype.kind not in "iu" and cells.size):
            found = f"an array of {cells.dtype} with shape {cells.shape}"
            raise self._refused("cells", found, "it must be a one-dimensional array of integers")
        return cells if cells.dtype is _INT64 else cells.astype(np.int64)

    def _no_such_cells(self, cells: Indices) -> ParameterError:
        wrong = int(cells.min()) if cells.min() < 0 else int(cells.max())
        return self._refused("cells", wrong, f"cells are numbered 0 to {self.cells - 1}")

    def _refused(self, parameter: str, value: object, allowed: str) -> ParameterError:
        return ParameterError(f"heap {self.label!r}", parameter, value, allowed)

    def _outside(self, start: int, length: int) -> HeapStateError:
        found = "the cell has no payload" if start < 0 else "no live payload is there"
        hint = "It was never written, or was evicted since it was located."
        return HeapStateError(self.label, f"read {length} bytes at {start}", found, hint)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.cells} cells: {self.live} bytes live, capacity {self.capacity}>"

    # The saved and the pickled form hold the live payloads, packed, in the order in which they were written.

    def _written(self) -> tuple[Indices, NDArray[np.bool_]]:
        """All cells with a payload in the order of writing, and for each whether it begins a row.

        A heap that evicts must evict the same rows after it was pickled or restored. This one sorts by position and
        reports each cell as a row of its own: right only for heaps that never evict.
        """
        cells = np.flatnonzero(self._lengths)
        return cells[np.argsort(self._starts[cells], kind="stable")], np.ones(len(cells), np.bool_)

    def _snapshot(self) -> dict[str, Any]:
        cells, begins = self._written()
        starts, lengths = self.locate(cells)
        payloads = self._join(starts, lengths)
        return {"order": cells, "lengths": lengths, "payloads": payloads, "rows": begins, "evicted": self._evicted}

    def _join(self, starts: Indices, lengths: Indices) -> bytes:
        """The payloads, contiguous."""
        return b"".join(self.view(*place) for place in zip(starts.tolist(), lengths.tolist()))

    def _resume(self, snapshot: dict[str, Any]) -> None:
        """Store the payloads of a snapshot, row by row. This heap must be new."""
        cells, lengths, payloads = snapshot["order"].tolist(), snapshot["lengths"].tolist(), snapshot["payloads"]
        first = np.flatnonzero(snapshot["rows"]).tolist()
        offsets = [0, *accumulate(lengths)]
        for low, high in zip(first, [*first[1:], len(cells)]):
            self._store(cells[low:high], memoryview(payloads)[offsets[low] : offsets[high]], lengths[low:high])
        self._evicted = snapshot["evicted"]

    def state(self) -> State:
        """Everything that another heap with the same parameters needs in order to become this one."""
        snapshot = self._snapshot()
        arrays = {name: snapshot[name] for name in ("order", "lengths", "rows")}
        arrays["payloads"] = np.array(bytearray(snapshot["payloads"]), np.uint8)
        return State({"cells": self.cells, "evicted": list(astuple(self._evicted))}, arrays)

    def restore(self, state: State) -> None:
        """Become what another heap was; this one must be new.

        :param state: of a heap of the same kind, with the same parameters
        """
        state.same(cells=self.cells)
        evicted = Evictions(*state.numbers("evicted", 3))
        order = state.array("order", np.int64, None)
        lengths = state.array("lengths", np.int64, len(order))
        rows = state.array("rows", np.bool_, len(order))
        payloads = state.array("payloads", np.uint8, None)
        within("order", order, 0, self.cells - 1)
        within("lengths", lengths, 1, _MAX_PAYLOAD)
        if len(np.unique(order)) != len(order) or int(lengths.sum()) != len(payloads) or not rows[:1].all():
            raise StateError("cells, lengths and payloads do not fit together")
        self._resume({"order": order, "lengths": lengths, "payloads": payloads, "rows": rows, "evicted": evicted})
        if len(order) != np.count_nonzero(self._lengths):
            raise StateError(f"{len(payloads)} bytes of payloads were saved, the capacity is {self.capacity} bytes")

    def __reduce__(self) -> tuple[Any, ...]:
        # Names the class and nothing private: pickles stay readable when private modules are renamed.
        create: Callable[..., TableHeap] = type(self)
        return partial(create, **self._parameters()), (self.cells,), self._snapshot()

    def __setstate__(self, snapshot: dict[str, Any]) -> None:
        self._resume(snapshot)

    # Heaps that save payloads with their positions, so that saving again writes only what is new, use these instead.

    def _table_state(self) -> State:
        """The table of cells, without payloads."""
        lengths = used(self._lengths)
        arrays = {"starts": self._starts[: len(lengths)], "lengths": lengths}
        return State({"cells": self.cells, "evicted": list(astuple(self._evicted))}, arrays)

    def _restore_table(self, state: State) -> tuple[Indices, Indices]:
        """Fill the table of cells, and return the part of it that was saved: positions and lengths."""
        state.same(cells=self.cells)
        state.begin_of(starts=self._starts, lengths=self._lengths)
        count = max(len(state.arrays["starts"]), len(state.arrays["lengths"]))
        starts, lengths = self._starts[:count], self._lengths[:count]
        within("lengths", lengths, 0, _MAX_PAYLOAD)
        self._evicted = Evictions(*state.numbers("evicted", 3))
        self._totals[0] = int(lengths.sum(dtype=np.int64))
        return starts, lengths
