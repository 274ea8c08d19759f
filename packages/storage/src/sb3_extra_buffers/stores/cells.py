"""``CellStore``: one payload per observation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.codecs import Codec, decode_batch, encode_batch
from sb3_extra_buffers.errors import HeapStateError
from sb3_extra_buffers.heaps import Heap, SizedHeap, within_reach
from sb3_extra_buffers.heaps.state import State, StateError, within
from sb3_extra_buffers.memory import Bytes, Indices
from sb3_extra_buffers.stores.protocol import NO_CELL, Origins

#: Long writes are cut into steps of about this many raw bytes, so that the worst case of a step stays small.
_MAX_STEP_NBYTES = 1 << 22
#: What a heap may leave unused behind a payload.
_MAX_ALIGNMENT = 64
#: The number of a cell that is not pending.
_NOT_PENDING = -1


class CellStore:
    """Cells that go through a codec into a section of a heap.

    With ``batch``, the newest cells stay uncompressed until there are enough of them to compress together. Between two
    steps of a training run, environments and networks push the codec out of the caches, so that compressing one
    observation at a time costs about twice as much. If a batch cannot be stored, it stays pending and the write that
    needed the room fails.

    :param codec: bound to the cells of this store
    :param heap: holds the payloads; several stores may share it
    :param first: first cell of this store's section of the heap
    :param cells: number of cells of the section
    :param reason: why this codec, if the choice was automatic
    :param threads: threads used to decode a batch; ``None`` chooses automatically
    :param batch: cells to compress together, at most 127; 0 compresses each write at once
    """

    def __init__(
        self,
        codec: Codec,
        heap: Heap,
        first: int,
        cells: int,
        *,
        reason: str = "",
        threads: int | None = None,
        batch: int = 0,
    ) -> None:
        self.cells = cells
        self.row_nbytes = codec.cell.nbytes
        self._codec = codec
        self._heap = heap
        self._first = first
        self._reason = reason
        self._threads = threads
        self._cells_at_once = max(1, _MAX_STEP_NBYTES // self.row_nbytes)
        self._sized = heap if isinstance(heap, SizedHeap) else None
        self._pending = _PendingBatch(cells, self.row_nbytes, batch) if batch else None

    @property
    def overhead(self) -> int:
        return 0 if self._pending is None else self._pending.overhead

    @property
    def active(self) -> CellStore:
        return self

    def describe(self) -> str:
        return f"{self._codec.spec} ({self._reason})" if self._reason else str(self._codec.spec)

    def read(self, cells: Indices, out: Bytes | None, next_out: Bytes | None = None, /) -> None:
        assert out is not None
        assert next_out is None
        pending = self._pending
        if pending is None or not pending.count:
            self._read(cells, out)
            return
        slots = pending.slot_of[cells]
        here = slots != _NOT_PENDING
        if not here.all():
            # Rows of pending cells are filled in below; until then any other cell will do.
            self._read(np.where(here, cells[here.argmin()], cells) if here.any() else cells, out)
        out[here] = pending.rows[slots[here]]

    def write(self, cells: Indices, obs: Bytes | None, next_obs: Bytes | None = None, /) -> None:
        assert obs is not None
        assert next_obs is None
        pending = self._pending
        if pending is not None:
            if not pending.takes(cells):
                self._flush(pending)
            if len(cells) <= len(pending.rows):
                pending.add(cells, obs)
                return
        self._write(cells, obs)

    def origins(self, cells: Indices, is_next: bool = False, /) -> Origins:
        assert not is_next
        slots = None if self._pending is None else self._pending.slot_of[cells]
        if slots is None or slots.max(initial=_NOT_PENDING) == _NOT_PENDING:
            return Origins(self._codec, self._located(cells))
        assert self._pending is not None
        here = slots != _NOT_PENDING
        located = np.full(len(cells), NO_CELL, np.int64)
        located[~here] = self._located(cells[~here])
        return Origins(self._codec, located, [(np.flatnonzero(here), self._pending.rows[slots[here]])])

    def refuse_too_large(self, rows: Bytes, /) -> bool:
        # Most heaps are larger than any step: rows are encoded only where one might not fit.
        largest = self._codec.max_encoded_nbytes + _MAX_ALIGNMENT
        if self._sized is None or len(rows) * largest <= self._heap.capacity:
            return False
        for start in range(0, len(rows), self._cells_at_once):
            lengths = self._lengths_that_matter(rows[start : start + self._cells_at_once])
            self._sized.refuse_too_large(lengths)
        return True

    def stored_nbytes(self) -> int:
        _, lengths = self._heap.locate(np.arange(self._first, self._first + self.cells))
        return int(lengths.sum()) + (0 if self._pending is None else self._pending.nbytes)

    def holds(self, cells: Indices, /) -> NDArray[np.bool_]:
        starts, _ = self._heap.locate(cells + self._first)
        held: NDArray[np.bool_] = starts >= 0
        return held if self._pending is None else held | (self._pending.slot_of[cells] != _NOT_PENDING)

    def clear(self) -> None:
        # Other stores may share the heap. All stores of a buffer are cleared together.
        self._heap.clear()
        if self._pending is not None:
            self._pending.drop()

    def state(self) -> State:
        facts = {"codec": self._codec.spec.to_json(), "cell": self._codec.cell.to_json(), "first": self._first}
        return State(facts) if self._pending is None else self._pending.state().put("store", State(facts))

    def restore(self, state: State, /) -> None:
        expected = {"codec": self._codec.spec.to_json(), "cell": self._codec.cell.to_json(), "first": self._first}
        (state if self._pending is None else state.part("store")).same(**expected)
        if self._pending is not None:
            self._pending.restore(state)

    def _read(self, cells: Indices, out: Bytes) -> None:
        starts, lengths = self._heap.locate(cells + self._first)
        written = starts >= 0
        if not written.all():
            self._refuse_evicted(cells[~written])
            out[~written] = 0
            if written.any():
                found = np.empty((int(written.sum()), self.row_nbytes), np.uint8)
                self._decode(starts[written], lengths[written], found)
                out[written] = found
            return
        self._decode(starts, lengths, out)

    def _decode(self, starts: Indices, lengths: Indices, out: Bytes) -> None:
        source, places = within_reach(self._heap, starts, lengths)
        decode_batch(self._codec, source, places, lengths, out, threads=self._threads)

    def _located(self, cells: Indices) -> Indices:
        located = self._first + cells
        if self._heap.evicted.cells:
            absent = self._heap.locate(located)[0] < 0
            if absent.any():
                self._refuse_evicted(cells[absent])
        return located

    def _write(self, cells: Indices, rows: Bytes) -> None:
        cells = cells + self._first
        for start in range(0, len(cells), self._cells_at_once):
            part = slice(start, start + self._cells_at_once)
            room = self._heap.reserve(cells[part], len(cells[part]) * self._codec.max_encoded_nbytes)
            self._heap.commit(encode_batch(self._codec, rows[part], room))

    def _flush(self, pending: _PendingBatch) -> None:
        cells, rows = pending.content()
        if len(cells):
            self._write(cells, rows)
        pending.drop()

    def _lengths_that_matter(self, rows: Bytes) -> list[int]:
        """Sizes of payloads, up to where the others fit even if they were as large as they can be."""
        largest = self._codec.max_encoded_nbytes + _MAX_ALIGNMENT
        room = np.empty(len(rows) * self._codec.max_encoded_nbytes, np.uint8)
        lengths: list[int] = []
        spare = self._heap.capacity
        while len(lengths) < len(rows) and (len(rows) - len(lengths)) * largest > spare:
            # Twice as many each time: a few rows often decide, and few calls see all of them.
            found = encode_batch(self._codec, rows[len(lengths) : 2 * len(lengths) + 1], room).tolist()
            lengths += found
            spare -= sum(found) + len(found) * _MAX_ALIGNMENT
        return lengths

    def _refuse_evicted(self, absent: Indices) -> None:
        if self._heap.evicted.cells:
            asked, found = f"read cell {absent.item(0)}", "it was evicted to make room, or was never written"
            raise HeapStateError(type(self._heap).__name__, asked, found, "Give the heap a larger capacity.")


class _PendingBatch:
    """The newest cells, uncompressed.

    Every change is published by one assignment: an entry counts only if ``slot_of`` leads back to it. So an interrupt
    between two lines loses at most the write that it hits.

    :param cells: number of cells of the store
    :param row_nbytes: size of one cell
    :param batch: number of cells that can be pending
    """

    def __init__(self, cells: int, row_nbytes: int, batch: int) -> None:
        self.rows = np.empty((batch, row_nbytes), np.uint8)
        #: Entries in use, those of interrupted writes included.
        self.count = 0
        #: For each cell, its entry.
        self.slot_of = np.full(cells, _NOT_PENDING, np.int8)
        self._cells = np.zeros(batch, np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes of pending cells."""
        return len(self.content()[0]) * self.rows.shape[1]

    @property
    def overhead(self) -> int:
        """Bytes besides those of pending cells."""
        return self.rows.nbytes - self.nbytes + self.slot_of.nbytes

    def takes(self, cells: Indices) -> bool:
        """Whether there is room for these cells, and none of them is pending."""
        fits = self.count + len(cells) <= len(self.rows)
        return fits and bool((self.slot_of[cells] == _NOT_PENDING).all())

    def add(self, cells: Indices, rows: Bytes) -> None:
        """Take cells for which there is room."""
        begin, end = self.count, self.count + len(cells)
        self.rows[begin:end] = rows
        self._cells[begin:end] = cells
        self.count = end
        self.slot_of[cells] = np.arange(begin, end)

    def content(self) -> tuple[Indices, Bytes]:
        """Cells and rows, oldest first."""
        cells = self._cells[: self.count]
        valid = self.slot_of[cells] == np.arange(self.count)
        return (cells, self.rows[: self.count]) if valid.all() else (cells[valid], self.rows[: self.count][valid])

    def drop(self) -> None:
        """Drop all cells."""
        self.slot_of[self._cells[: self.count]] = _NOT_PENDING
        self.count = 0

    def state(self) -> State:
        cells, rows = self.content()
        return State({}, {"cells": cells, "rows": rows})

    def restore(self, state: State) -> None:
        cells = state.array("cells", np.int64, None)
        within("cells", cells, 0, len(self.slot_of) - 1)
        if len(cells) > len(self.rows) or len(np.unique(cells)) != len(cells):
            raise StateError(f"{len(cells)} cells are pending, there is room for {len(self.rows)}")
        self.add(cells, state.array("rows", np.uint8, len(cells), self.rows.shape[1]))

    def __getstate__(self) -> dict[str, Any]:
        # Not flushed: the heap, which other stores share, may have been pickled already.
        return {"shape": (len(self.slot_of), self.rows.shape[1], len(self.rows)), "content": self.content()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        cells, row_nbytes, batch = state["shape"]
        self.__init__(cells, row_nbytes, batch)  # type: ignore[misc]
        self.add(*state["content"])
