"""``DurableHeap``: the ring in a file with a name, which is found again after a crash."""

from __future__ import annotations

import os
import warnings
import weakref
from collections.abc import Iterator
from io import FileIO
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO, cast
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.checkpoints.atomic import write_all
from sb3_extra_buffers.errors import FileContentError, FileDamagedError, HeapFullError, HeapStateError, ParameterError
from sb3_extra_buffers.heaps.file_lock import FileLock
from sb3_extra_buffers.heaps.journal import Journal, read_base
from sb3_extra_buffers.heaps.journal_format import BASE_NBYTES, BEGIN, CLEAR, ROW, Base, Entry, Record, ring_header
from sb3_extra_buffers.heaps.mmap import MmapHeap
from sb3_extra_buffers.heaps.protocol import Evictions
from sb3_extra_buffers.heaps.recovery import Recovery, recover
from sb3_extra_buffers.heaps.ring_file import FIRST_NBYTES, claim_name, does_not_fit, is_unfinished, read_identity
from sb3_extra_buffers.heaps.saved_bytes import SavedBytes
from sb3_extra_buffers.heaps.state import State
from sb3_extra_buffers.memory import Indices, untouched


class DurableHeap(MmapHeap):
    """A byte ring in a file, and beside it a journal of what was committed. A copy of it has a file without a name.

    :param cells: how many cells there are
    :param capacity: how many bytes of payloads the file has room for
    :param path: of the file; the journal has the same name with ``.journal`` behind it
    :param resident: how many bytes of the file may be in the memory of the process; 0 sets no limit
    :param reopen: whether the file is there already
    """

    _first = FIRST_NBYTES

    def __init__(self, cells: int, capacity: int, path: str | os.PathLike[str], resident: int, reopen: bool) -> None:
        if not isinstance(path, (str, os.PathLike)) or not Path(path).parent.is_dir() or Path(path).is_dir():
            raise ParameterError("heap 'mmap'", "path", path, "it must be a file in a folder that exists")
        if not isinstance(reopen, bool):
            raise ParameterError("heap 'mmap'", "reopen", reopen, "it must be True or False")
        self.path, self._reopen = Path(path).absolute(), reopen
        self._journal = Journal(self.path.with_name(self.path.name + ".journal"))
        weakref.finalize(self, self._journal.close)
        self._identity, self._found = b"", b""
        #: What was found when it was reopened.
        self.recovery = Recovery()
        super().__init__(cells, capacity, self.path.parent, resident)
        #: Of the payload of each cell.
        self.checksums: NDArray[np.uint32] = untouched(self.cells, np.uint32)
        self._checksum_of = memoryview(self.checksums)
        if self._found:
            self._recover(self._found)
            self._found = b""

    def sync(self) -> None:
        """Wait until all that was committed is on the disk, so that a power cut cannot take it."""
        self._check_owner()
        try:
            os.fsync(self._file.fileno())  # first the payloads, then what tells of them
            self._journal.sync()
        except OSError as error:
            raise self._disk_full(0, error) from error

    def close(self) -> None:
        """Let go of the file, so that it can be opened by others. Nothing can be written any more."""
        self._journal.close()
        self._file.close()
        self._lock.release()

    def discard(self) -> None:
        """Let go of the files and remove them, because what they were made for has failed. Those found stay."""
        if not self._reopen and not self._file.closed:
            self.path.unlink(missing_ok=True)  # as long as nobody else can have opened them
            self._journal.path.unlink(missing_ok=True)
            self.close()

    def restore(self, state: State) -> None:
        try:
            super().restore(state)
        except BaseException:
            self.discard()
            raise

    def clear(self) -> None:
        self._check_owner()
        self._note(Record(CLEAR, 0), 0)
        super().clear()

    # What the journal says, done again.

    def begin_from(self, base: Base) -> None:
        """Be empty, with what a journal begins with."""
        self._tail, self._evicted = base.tail, Evictions(*base.evicted)

    def redo_clear(self) -> None:
        """Drop everything."""
        super().clear()

    def redo_begin(self, cells: list[int], oldest: int) -> None:
        """Drop what a row was about to be written over; the cells that it was for keep what was not."""
        lengths = [self._length_of[cell] for cell in cells]
        starts = self._forget(cells)
        self._make_room(oldest)
        self._take_back(cells, starts, lengths)

    def redo_row(self, record: Record) -> None:
        """Enter a row whose payloads are in the file. Those without a length only keep their place."""
        cells, starts = [entry.cell for entry in record.entries], [entry.start for entry in record.entries]
        alive = [entry for entry in record.entries if entry.length]
        self._forget(cells)
        self._make_room(record.position - self._capacity)
        self._record([one.cell for one in alive], [one.start for one in alive], [one.length for one in alive])
        self._queue.push(cells, starts, self._starts)
        self._tail = max(self._tail, record.position)
        self._remember(record)

    def queued(self) -> tuple[Indices, Indices, Indices]:
        """Every payload in the order of writing: its cell, where it is, and the number of its row.

        Also those whose cell has been written again, or emptied, since.
        """
        cells, starts, rows = self._queue.before(np.iinfo(np.int64).max)
        return cells.astype(np.int64), starts, rows

    def are_alive(self, cells: Indices, starts: Indices) -> NDArray[np.bool_]:
        """Which of these payloads are still those of their cells."""
        alive: NDArray[np.bool_] = self._starts[cells] == starts
        return alive

    def drop(self, cells: list[int]) -> None:
        """Empty these cells."""
        self._forget(cells)

    def _recover(self, content: bytes) -> None:
        self.recovery = recover(self, read_base(self._journal.path, content), content)
        self._rewrite_journal()
        if not self.recovery.is_whole:
            warnings.warn(
                f"{self.path}: {self.recovery.dropped_nbytes} bytes at the end of the journal are no whole record, "
                f"{len(self.recovery.damaged)} cells had damaged payloads. They were dropped; "
                f"{self.recovery.rows} rows are there, and whole.",
                stacklevel=6,  # who made the heap
            )

    # Files.

    def _open_file(self) -> BinaryIO:
        if not self._reopen:
            claim_name(self.path)
        elif not self.path.is_file():
            raise FileContentError(str(self.path), "a heap to reopen", "no file", "Leave out reopen to make one.")
        self._lock = FileLock(self.label, self.path)
        file = FileIO(str(self.path), "r+")
        try:
            self._make_or_find(file)
        except BaseException:
            file.close()
            self._lock.release()
            raise
        return cast("BinaryIO", file)

    def _make_or_find(self, file: FileIO) -> None:
        journal = self._journal.path
        found = journal.read_bytes() if self._reopen and journal.is_file() else b""
        if not self._reopen or is_unfinished(file, self._capacity, len(found) > BASE_NBYTES):
            self._make(file)
            return
        self._identity = read_identity(self.path, file, self._capacity)
        if not found:
            raise FileDamagedError(str(self.path), (f"its journal {journal} is missing or empty",))
        base = read_base(journal, found)
        if base.identity != self._identity or base.capacity != self._capacity:
            raise FileContentError(str(journal), f"the journal of {self.path}", "that of another heap")
        if base.cells != self.cells:
            hint = "Reopen it with the number of cells that it was made with."
            raise FileContentError(str(self.path), f"a heap of {self.cells} cells", f"one of {base.cells}", hint)
        self._found = found

    def _make(self, file: FileIO) -> None:
        try:
            self._journal.path.unlink(missing_ok=True)  # of a heap that is gone
            file.truncate(0)
            self._claim(cast("BinaryIO", file))
            self._identity = os.urandom(16)
            self._journal.rewrite(Base(self.cells, self._capacity, self._identity), ())
            file.seek(0)
            write_all(cast("BinaryIO", file), ring_header(self._capacity, self._identity))
        except (OSError, HeapFullError) as error:
            self.path.unlink(missing_ok=True)
            self._journal.path.unlink(missing_ok=True)
            raise (self._disk_full(self._capacity, error) if isinstance(error, OSError) else error) from error

    # Rows.

    def _store(self, cells: list[int], payloads: memoryview, lengths: list[int]) -> None:
        super()._store(cells, payloads, lengths)
        if self._journal.is_long:
            try:
                self._rewrite_journal()
            except HeapFullError:
                self._journal.postpone()  # the row is stored; the old journal is as good, only longer

    def _keep(self, saved: SavedBytes, starts: Indices, lengths: Indices) -> None:
        # Not left in the files that were loaded: this heap must be found again without them.
        super()._keep(saved, starts, lengths)
        if self._is_elsewhere(starts, lengths):
            self._pour_all(saved)
            return
        for cell, start, length in zip(np.flatnonzero(self._lengths).tolist(), starts.tolist(), lengths.tolist()):
            payload = self.view(start, length)
            self._write(start % self._capacity, payload)
            self._checksum_of[cell] = crc32(payload)
        self._leave_saved()
        self._rewrite_journal()

    def _pour_all(self, saved: SavedBytes) -> None:
        """Write every row again: what was saved is that of a ring of another capacity, whose end was elsewhere."""
        needed = self._live
        # Known before anything is written, or noticed by the gap at the end of the ring.
        if needed > self._capacity or not self._pour(saved):
            raise does_not_fit(self._capacity, needed)
        self._rewrite_journal()

    def _check_room(self, cells: list[int], oldest: int) -> None:
        super()._check_room(cells, oldest)
        if self._queue.begins_before(oldest):
            # Said before the first byte is written over them: nobody who reopens the file must believe in them.
            self._note(Record(BEGIN, oldest, [Entry(cell) for cell in cells]), 0)

    def _written(self, cells: list[int], starts: list[int], lengths: list[int], payloads: memoryview) -> None:
        entries, at = [], 0
        for cell, start, length in zip(cells, starts, lengths):
            entries.append(Entry(cell, start, length, crc32(payloads[at : at + length])))
            at += length
        record = Record(ROW, starts[-1] + lengths[-1], entries)
        self._note(record, at)
        self._remember(record)

    def _remember(self, record: Record) -> None:
        for entry in record.entries:
            self._checksum_of[entry.cell] = entry.checksum

    def _note(self, record: Record, needed: int) -> None:
        try:
            self._journal.append(record)
        except OSError as error:
            raise self._disk_full(needed, error) from error

    def _rewrite_journal(self) -> None:
        evicted = self._evicted
        counts = (evicted.rows, evicted.cells, evicted.nbytes)
        base = Base(self.cells, self._capacity, self._identity, self._journal.next_number, self._tail, counts)
        try:
            self._journal.rewrite(base, self._records())
        except OSError as error:
            raise self._disk_full(self._journal.nbytes, error) from error

    def _records(self) -> Iterator[Record]:
        """Every row of which something is alive, with the places of the rest: a row is evicted as a whole."""
        cells, starts, rows = self.queued()
        alive = self.are_alive(cells, starts)
        needed = np.isin(rows, rows[alive])
        lengths = np.where(alive, self._lengths[cells], 0)
        columns = (column[needed].tolist() for column in (rows, cells, starts, lengths, self.checksums[cells]))
        for _, row in groupby(zip(*columns), lambda entry: entry[0]):
            entries = [Entry(*fields) for _, *fields in row]
            yield Record(ROW, entries[-1].start + entries[-1].length, entries)

    def _check_owner(self) -> None:
        super()._check_owner()
        if self._file.closed:
            raise HeapStateError(self.label, "write", f"{self.path} was closed", "Reopen it.")

    def _index_nbytes(self) -> int:
        return super()._index_nbytes() + self.checksums.nbytes

    def __reduce__(self) -> tuple[Any, ...]:
        rebuild, (_, *rest) = super().__reduce__()
        return rebuild, (MmapHeap, *rest)
