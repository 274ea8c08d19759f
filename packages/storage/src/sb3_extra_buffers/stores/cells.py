"""``CellStore``: one payload per observation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.codecs import Codec, decode_batch, encode_batch
from sb3_extra_buffers.errors import HeapStateError
from sb3_extra_buffers.heaps import Heap, within_reach
from sb3_extra_buffers.heaps.state import State
from sb3_extra_buffers.memory import Bytes, Indices
from sb3_extra_buffers.stores.origins import Origins

#: Long writes are cut into rows of about this many raw bytes, so that the worst case of a row stays small.
_MAX_ROW_NBYTES = 1 << 22
#: What a heap may leave unused behind a payload.
_MAX_ALIGNMENT = 64


class CellStore:
    """Cells that go through a codec into a section of a heap.

    :param codec: bound to the cells of this store
    :param heap: where the payloads live; several stores may share it
    :param first: the first cell of this store's section of the heap
    :param cells: how many cells the section has
    :param reason: why this codec, if nobody asked for it
    :param threads: how many threads decode a batch; ``None`` uses as many as pay
    """

    overhead = 0

    def __init__(
        self, codec: Codec, heap: Heap, first: int, cells: int, *, reason: str = "", threads: int | None = None
    ) -> None:
        self.cells = cells
        self.row_nbytes = codec.cell.nbytes
        self._codec = codec
        self._heap = heap
        self._first = first
        self._reason = reason
        self._threads = threads
        self._cells_at_once = max(1, _MAX_ROW_NBYTES // self.row_nbytes)

    @property
    def codec(self) -> str:
        return f"{self._codec.spec} ({self._reason})" if self._reason else str(self._codec.spec)

    def read(self, cells: Indices, out: Bytes, /) -> None:
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

    def origins(self, cells: Indices, /) -> Origins:
        located = self._first + cells
        if self._heap.evicted.cells:
            absent = self._heap.locate(located)[0] < 0
            if absent.any():
                self._refuse_evicted(cells[absent])
        return Origins(self._codec, located)

    def write(self, cells: Indices, rows: Bytes, /) -> None:
        cells = cells + self._first
        if len(cells) <= self._cells_at_once:
            self._write_row(cells, rows)
            return
        for start in range(0, len(cells), self._cells_at_once):
            part = slice(start, start + self._cells_at_once)
            self._write_row(cells[part], rows[part])

    def _write_row(self, cells: Indices, rows: Bytes) -> None:
        room = self._heap.reserve(cells, len(cells) * self._codec.max_encoded_nbytes)
        self._heap.commit(encode_batch(self._codec, rows, room))

    def refuse_too_large(self, rows: Bytes) -> bool:
        """Refuse rows that a heap of limited capacity could never take, before they are written.

        :param rows: as for ``write``
        :return: whether some had to be encoded to see that: then it pays to remember that they fit
        """
        check = getattr(self._heap, "refuse_too_large", None)
        # Most heaps are larger than any row: only where one might not fit, it is worth encoding it to see.
        if check is None or len(rows) * (self._codec.max_encoded_nbytes + _MAX_ALIGNMENT) <= self._heap.capacity:
            return False
        for start in range(0, len(rows), self._cells_at_once):
            check(self._lengths_that_matter(rows[start : start + self._cells_at_once]))
        return True

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

    def stored_nbytes(self) -> int:
        _, lengths = self._heap.locate(np.arange(self._first, self._first + self.cells))
        return int(lengths.sum())

    def holds(self, cells: Indices, /) -> NDArray[np.bool_]:
        starts, _ = self._heap.locate(cells + self._first)
        return starts >= 0

    def clear(self) -> None:
        # Other stores may share the heap, but whoever clears one store of a buffer clears all of them.
        self._heap.clear()

    def state(self) -> State:
        return State({"codec": self._codec.spec.to_json(), "cell": self._codec.cell.to_json(), "first": self._first})

    def restore(self, state: State, /) -> None:
        state.same(**self.state().facts)

    def _refuse_evicted(self, absent: Indices) -> None:
        if self._heap.evicted.cells:
            asked, found = f"read cell {absent.item(0)}", "it was evicted to make room, or was never written"
            raise HeapStateError(type(self._heap).__name__, asked, found, "Give the heap a larger capacity.")
