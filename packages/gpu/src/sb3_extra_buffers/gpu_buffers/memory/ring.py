"""``device-ring``: a byte ring of fixed capacity on a device, first in, first out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import torch as th

from sb3_extra_buffers.checkpoints import StateError
from sb3_extra_buffers.errors import HeapFullError, ParameterError
from sb3_extra_buffers.gpu_buffers.devices import ALIGNMENT, aligned
from sb3_extra_buffers.gpu_buffers.memory.payloads import DevicePayloads, TensorBlock
from sb3_extra_buffers.gpu_buffers.raw_buffer import RawBuffer
from sb3_extra_buffers.heaps import HeapPlugin, hookimpl
from sb3_extra_buffers.heaps.block import SavedBytes
from sb3_extra_buffers.heaps.ring import RingHeap
from sb3_extra_buffers.memory import Indices
from sb3_extra_buffers.registry import Scalar

EVICT, RAISE = "evict", "raise"
#: Packing must free at least one of this many parts of the ring, to be worth its cost.
_WORTH_PACKING = 8


class SharedRawHeap(DevicePayloads, RingHeap):
    """
    A byte ring on a device. Payloads are appended; in the order of a replay buffer nothing ever moves.

    When it is full, the write is refused and nothing changes, or the oldest rows are dropped.

    :param n_cells: number of cells
    :param heap_bytes: capacity for payloads, each rounded up to a multiple of 16 bytes
    :param device: device of the payloads
    :param on_full: ``"raise"`` raises ``HeapFullError``, ``"evict"`` drops the oldest rows and counts them
    """

    label = "device-ring"
    _row_hint = "A step, or with frames a chunk of them, must fit as a whole: give a larger heap_bytes."

    def __init__(self, n_cells: int, heap_bytes: int, device: str | th.device = "cpu", *, on_full: str = RAISE) -> None:
        if on_full not in (EVICT, RAISE):
            raise ParameterError(f"heap {self.label!r}", "on_full", on_full, f"it must be {EVICT!r} or {RAISE!r}")
        if isinstance(heap_bytes, bool) or not isinstance(heap_bytes, (int, np.integer)) or heap_bytes < ALIGNMENT:
            allowed = f"it must be an integer, a number of bytes of at least {ALIGNMENT}"
            raise ParameterError(f"heap {self.label!r}", "heap_bytes", heap_bytes, allowed)
        self.on_full = on_full
        super().__init__(n_cells, device, int(heap_bytes) // ALIGNMENT * ALIGNMENT)

    @property
    def refuses_when_full(self) -> bool:
        """Whether a full heap refuses a write instead of dropping old payloads. The caller keeps refused payloads."""
        return self.on_full == RAISE

    @property
    def buffer(self) -> RawBuffer:
        """The bytes."""
        self.order.read()
        return self._own_block.raw

    @property
    def start_idx(self) -> th.Tensor:
        """Offset of each cell's payload in :attr:`buffer`; 0 for an empty cell."""
        return th.from_numpy(np.where(self._lengths, self._starts % self._capacity, 0))

    @property
    def data_end(self) -> int:
        """Bytes of the ring between the oldest payload and the end of the newest, holes included."""
        return self._tail - self._queue.oldest(self._tail)

    def ensure_space(self, needed: int, replaced: Sequence[int] = ()) -> None:
        """Make room for a payload without dropping another one; packs all payloads if necessary.

        :param needed: size of the payload in bytes
        :param replaced: cells that the payload replaces; packing clears them
        :raise HeapFullError: if it does not fit; then nothing has changed
        """
        needed = aligned(needed)
        place = self._tail % self._capacity
        # A payload is contiguous: one that would cross the end is placed at the beginning.
        gap = self._capacity - place if place + needed > self._capacity else 0
        # Holes and replaced cells may be overwritten.
        if needed <= self._capacity and not self._lost(replaced, self._tail + gap + needed - self._capacity):
            return
        if self._packed(replaced) + needed > self._capacity:
            hint = f"{self._live} bytes are in use. Give the heap a larger heap_bytes."
            raise HeapFullError(self.label, needed, self._capacity, hint)
        self._forget(list(replaced))
        self.compact()

    def is_worth_packing(self, replaced: Sequence[int] = ()) -> bool:
        """Whether to make room with :meth:`ensure_space` instead of dropping the oldest payloads.

        A ring that has dropped payloads is too small for all cells: it would be packed at almost every write, for a few
        bytes each time. A ring that refuses writes, or has dropped nothing so far, must lose nothing.

        :param replaced: cells that the next payload replaces
        """
        if self.refuses_when_full or not self._evicted.cells:
            return True
        return self._capacity - self._packed(replaced) >= self._capacity // _WORTH_PACKING

    def _packed(self, replaced: Sequence[int]) -> int:
        """Bytes in use by all other cells."""
        return self._live - sum(self._length_of[cell] for cell in replaced)

    def _lost(self, replaced: Sequence[int], oldest: int) -> int:
        """Bytes of other cells that would be dropped if everything before a position was."""
        if not self._queue.begins_before(oldest):
            return 0
        overtaken, starts, _ = self._queue.overtaken(oldest)
        lost, others = 0, set(replaced)
        for cell, start in zip(overtaken, starts):
            if self._start_of[cell] == start and cell not in others:
                lost += self._length_of[cell]
        return lost

    @property
    def _own_block(self) -> TensorBlock:
        assert isinstance(self._block, TensorBlock)
        return self._block

    def _allocate(self) -> TensorBlock:
        return self._new_block(self._capacity)

    def _keep(self, saved: SavedBytes, starts: Indices, lengths: Indices) -> None:
        """Restore saved payloads at their positions, or at new ones in a ring of another capacity."""
        if not len(starts):
            return
        saved.check(starts, lengths)
        if ((starts | lengths) % ALIGNMENT).any():
            raise StateError(f"a payload does not lie at a multiple of {ALIGNMENT} bytes")
        if self._is_elsewhere(starts, lengths):
            needed = self._live
            if needed > self._capacity or not self._pour(saved):
                raise StateError(f"{needed} bytes of payloads were saved, the capacity is {self._capacity} bytes")
            return
        begin = int(starts.min())
        for content in saved.cut(begin, saved.end):
            while len(content):
                place = begin % self._capacity
                count = min(len(content), self._capacity - place)
                self._write(place, memoryview(content[:count]))
                begin, content = begin + count, content[count:]

    def _is_elsewhere(self, starts: Indices, lengths: Indices) -> bool:
        """Whether saved payloads do not fit where they were: the ring had another capacity."""
        if not len(starts):
            return False
        oldest = min(int(starts.min()), self._queue.oldest(self._tail))
        return oldest < self._tail - self._capacity or bool((starts % self._capacity + lengths > self._capacity).any())

    def _pour(self, saved: SavedBytes) -> bool:
        """Write every row again, and say whether there was room for all of them."""
        queued = self._queue.overtaken(np.iinfo(np.int64).max)
        cells, starts, rows = (np.array(column, np.int64) for column in queued)
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

    def _begin_logs_after(self, other: SharedRawHeap) -> None:
        self._log = other._log
        self.clear()

    def _places(self, starts: Indices) -> tuple[Indices, Indices]:
        return np.zeros_like(starts), starts % self._capacity

    def _block_of(self, number: int) -> TensorBlock:  # noqa: ARG002  there is one
        return self._own_block

    def _check_room(self, cells: list[int], oldest: int) -> None:
        """Refuse a row that would drop others. Nothing has changed yet."""
        if self.refuses_when_full and self._lost(cells, oldest):
            hint = f"{self._live} bytes are in use. Give it a larger heap_bytes, or for replay on_full='evict'."
            # The bytes that stay plus the new ones.
            needed = self._packed(cells) + oldest + self._capacity - self._tail
            raise HeapFullError(self.label, max(needed, self._capacity + 1), self._capacity, hint)

    def refuse_too_large(self, lengths: list[int]) -> None:
        super().refuse_too_large([aligned(length) for length in lengths])

    def _parameters(self) -> dict[str, Scalar]:
        return {"heap_bytes": self._capacity, "device": str(self.device), "on_full": self.on_full}


def _create(cells: int, capacity: Any, device: str, on_full: str) -> SharedRawHeap:
    return SharedRawHeap(cells, capacity, device, on_full=on_full)


SharedRawHeap.__module__ = __package__  # pickles name the package, so files may move


@hookimpl
def sb3_extra_buffers_heap() -> HeapPlugin:
    return HeapPlugin(
        protocol=1,
        factory=_create,
        summary="A fixed number of bytes on a torch device; refuses rows when it is full, or drops the oldest",
        required=("capacity",),
        parameters={"device": "auto", "on_full": RAISE},
    )
