"""A ring that is made again from its journal: what was committed is there, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from sb3_extra_buffers.heaps.journal_format import BASE_NBYTES, BEGIN, CLEAR, Base, Record, unpack
from sb3_extra_buffers.progress import progress_bar

if TYPE_CHECKING:
    from sb3_extra_buffers.heaps.durable import DurableHeap

#: How many payloads are read and checked at once.
_CHECKED_AT_ONCE = 1024


@dataclass(frozen=True)
class Recovery:
    """What was found when a heap was reopened.

    :param rows: committed rows that are there
    :param cells: cells with a payload
    :param dropped_nbytes: bytes at the end of the journal that are no whole record, and were dropped
    :param damaged: cells that lost their payload, with the rest of their row, since its bytes are not those committed
    """

    rows: int = 0
    cells: int = 0
    dropped_nbytes: int = 0
    damaged: tuple[int, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether everything that was found could be used. What was cut off between two records leaves no trace."""
        return not self.dropped_nbytes and not self.damaged


def recover(heap: DurableHeap, base: Base, content: bytes) -> Recovery:
    """Do again what a journal says, and compare every payload with its checksum.

    :param heap: empty
    :param base: what the journal begins with
    :param content: all of the journal
    """
    heap.begin_from(base)
    journal, place, number = memoryview(content), BASE_NBYTES, base.first
    while (found := unpack(journal, place, number)) is not None and _fits(heap, found[0]):
        _apply(heap, found[0])
        number, place = number + 1, found[1]
    damaged, rows = _check_payloads(heap)
    cells = int(np.count_nonzero(heap.locate(np.arange(heap.cells))[1]))
    return Recovery(rows, cells, len(content) - place, damaged)


def _fits(heap: DurableHeap, record: Record) -> bool:
    """Whether a record can be true. Its checksum is right, so this is about who wrote it."""
    capacity, end = heap.capacity, record.position
    cells = {entry.cell for entry in record.entries}
    if len(cells) != len(record.entries) or any(not 0 <= cell < heap.cells for cell in cells):
        return False
    if record.kind in (BEGIN, CLEAR):
        return end < 1 << 62
    return 0 < end < 1 << 62 and all(
        entry.length >= 0
        and max(0, end - capacity) <= entry.start <= end - entry.length
        # A payload is contiguous.
        and entry.start % capacity + entry.length <= capacity
        for entry in record.entries
    )


def _apply(heap: DurableHeap, record: Record) -> None:
    if record.kind == CLEAR:
        heap.redo_clear()
    elif record.kind == BEGIN:
        heap.redo_begin([entry.cell for entry in record.entries], record.position)
    else:
        heap.redo_row(record)


def _check_payloads(heap: DurableHeap) -> tuple[tuple[int, ...], int]:
    """Empty the cells of every row of which a payload is damaged; return them, and how many rows are left."""
    cells, starts, rows = heap.queued()
    alive = heap.are_alive(cells, starts)
    cells, starts, rows = cells[alive], starts[alive], rows[alive]
    sizes = heap.locate(cells)[1]
    is_bad = np.zeros(len(cells), np.bool_)
    with progress_bar("payloads checked", len(cells)) as advance:
        for first in range(0, len(cells), _CHECKED_AT_ONCE):
            part = slice(first, first + _CHECKED_AT_ONCE)
            heap.bring(starts[part], sizes[part])
            found = [crc32(heap.view(*place)) for place in zip(starts[part].tolist(), sizes[part].tolist())]
            is_bad[part] = np.array(found, np.uint32) != heap.checksums[cells[part]]
            advance(len(found))
    lost = np.isin(rows, rows[is_bad])
    damaged = tuple(cells[lost].tolist())
    heap.drop(list(damaged))
    return damaged, len(np.unique(rows[~lost]))
