"""``mmap``: the ring in a file, for buffers that are larger than memory."""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import BinaryIO

import numpy as np

from sb3_extra_buffers.checkpoints.replacing import write_all
from sb3_extra_buffers.errors import HeapFullError, HeapStateError, ParameterError
from sb3_extra_buffers.heaps.advice import Advice
from sb3_extra_buffers.heaps.block import Block
from sb3_extra_buffers.heaps.plugin import HeapPlugin
from sb3_extra_buffers.heaps.residence import Residence, checked_limit
from sb3_extra_buffers.heaps.ring import RingHeap
from sb3_extra_buffers.heaps.saved_bytes import SavedBytes
from sb3_extra_buffers.heaps.saved_pages import SavedPages
from sb3_extra_buffers.memory import Bytes, ByteSource, Indices
from sb3_extra_buffers.registry import Scalar, hookimpl

#: How much of a file may be in the memory of a process, unless it is said: what lies below is mapped once and stays.
RESIDENT_NBYTES = 1 << 30


class MmapHeap(RingHeap):
    """A byte ring in a file of fixed size. The file has no name: it vanishes with the heap, also after a crash.

    Disk space is claimed when the heap is made, so that a full disk is an error there and not nine hours later.
    Payloads are written through the file and read through the mapping. Of a batch, the operating system is told at
    once where all its payloads are; beyond ``resident`` bytes, mapped pages are let go again.

    :param cells: how many cells there are
    :param capacity: how many bytes of payloads the file has room for
    :param folder: where to put the file; the system's temporary folder if left out
    :param resident: how many bytes of the file may be in the memory of the process; 0 sets no limit
    """

    label = "mmap"
    #: Whether the room for payloads is part of ``nbytes``. What says nothing about it has them in memory.
    payloads_in_memory = False
    #: Where payloads begin in the file.
    _first = 0

    def __init__(
        self,
        cells: int,
        capacity: int,
        folder: str | os.PathLike[str] | None = None,
        resident: int = RESIDENT_NBYTES,
    ) -> None:
        if folder is not None and not (isinstance(folder, (str, os.PathLike)) and Path(folder).is_dir()):
            raise ParameterError("heap 'mmap'", "folder", folder, "it must be a folder that exists")
        self._asked_folder = folder
        self._folder = Path(tempfile.gettempdir() if folder is None else folder)
        self._resident = checked_limit(resident)
        self._owner = os.getpid()
        super().__init__(cells, capacity)

    @property
    def nbytes(self) -> int:
        return self._index_nbytes()  # the payloads are in the file

    @property
    def moves(self) -> int | None:
        return None  # so that every batch asks, and is brought

    def bring(self, starts: Indices, lengths: Indices, /) -> tuple[ByteSource, Indices]:
        """Have the payloads of a batch read from the disk, all at the same time.

        :param starts: their positions
        :param lengths: their sizes
        """
        pages, saved = self._pages, self._saved
        if pages is None or saved is None:
            begins, ends = self._in_file(starts, lengths)
            self._residence.touch(begins, ends)
        else:  # what was loaded is in files of its own
            is_here = starts >= saved.end
            begins, ends = self._in_file(starts[is_here], lengths[is_here])
            others = pages.places(starts[~is_here])
            others_ends = others + lengths[~is_here]
            self._residence.touch(np.concatenate([begins, others]), np.concatenate([ends, others_ends]))
            pages.will_need(others, others_ends)
        self._advice.will_need(begins, ends)
        return self, starts

    def view(self, start: int, length: int, /) -> memoryview:
        found = super().view(start, length)
        if self._residence.is_bounded:
            pages, saved = self._pages, self._saved
            is_loaded = pages is not None and saved is not None and start < saved.end
            place = pages.place(start) if pages is not None and is_loaded else self._first + start % self._capacity
            self._residence.touch_one(place, place + length)
        return found

    def _in_file(self, starts: Indices, lengths: Indices) -> tuple[Indices, Indices]:
        places = starts % self._capacity
        return places + self._first, places + self._first + np.minimum(lengths, self._capacity - places)

    def reserve(self, cells: Indices, worst_case_bytes: int, /) -> Bytes:
        self._check_owner()
        return super().reserve(cells, worst_case_bytes)

    def _check_owner(self) -> None:
        if os.getpid() != self._owner:
            hint = "Make a heap of its own in the child, or pickle this one."
            raise HeapStateError(
                self.label, "write", "this process was forked and shares the file with its parent", hint
            )

    def _allocate(self) -> Block:
        self._file = self._open_file()
        weakref.finalize(self, self._file.close)
        try:
            mapping = mmap.mmap(self._file.fileno(), self._first + self._capacity, access=mmap.ACCESS_READ)
        except OSError as error:
            raise self._disk_full(self._capacity, error) from error
        self._advice = Advice(mapping, self._file.fileno())
        self._residence = Residence(self._advice, len(mapping), self._resident)
        self._pages: SavedPages | None = None
        return Block(np.frombuffer(mapping, np.uint8)[self._first :])

    def _open_file(self) -> BinaryIO:
        """The file, with all the room that it will need."""
        try:
            # Open as long as the heap lives, so no «with».
            file = tempfile.TemporaryFile(dir=self._folder, prefix="sb3-extra-buffers-", buffering=0)  # noqa: SIM115
        except OSError as error:
            found, hint = str(error.strerror), "Choose a folder in which files can be made."
            raise HeapStateError(self.label, f"make a file in {self._folder}", found, hint) from error
        try:
            self._claim(file)
        except HeapFullError:
            file.close()
            raise
        return file

    def _claim(self, file: BinaryIO) -> None:
        """Claim disk space."""
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, self._first + self._capacity)
            else:
                file.truncate(self._first + self._capacity)
        except OverflowError as error:
            raise HeapFullError(self.label, self._capacity, 0, "No file can be as large.") from error
        except OSError as error:
            raise self._disk_full(self._capacity, error) from error

    def _write(self, place: int, data: memoryview) -> None:
        # Not through the mapping: there a full disk is a signal that kills the process, here it is an exception.
        try:
            self._file.seek(self._first + place)
            write_all(self._file, data)
        except OSError as error:
            raise self._disk_full(len(data), error) from error

    def _keep(self, saved: SavedBytes, starts: Indices, lengths: Indices) -> None:
        super()._keep(saved, starts, lengths)
        if self._saved is not None:
            self._pages = SavedPages(self._advice, self._first + self._capacity, self._saved)
            self._pages.let_go()  # what was read in order to check it
            self._residence = Residence(self._pages, self._pages.nbytes, self._resident)

    def _leave_saved(self) -> None:
        super()._leave_saved()
        if self._pages is not None:
            self._pages.let_go()
            self._pages = None
            self._residence = Residence(self._advice, self._first + self._capacity, self._resident)

    def _disk_full(self, needed: int, error: OSError) -> HeapFullError:
        free = shutil.disk_usage(self._folder).free
        hint = (
            f"Writing in {self._folder} failed ({error.strerror}); {free} bytes are free there. Choose another folder."
        )
        return HeapFullError(self.label, needed, self._capacity, hint)

    def _index_nbytes(self) -> int:
        return super()._index_nbytes() + self._residence.nbytes

    def _parameters(self) -> dict[str, Scalar]:
        # As it was asked for: another machine has its temporary folder elsewhere.
        folder = None if self._asked_folder is None else os.fspath(self._asked_folder)
        return {**super()._parameters(), "folder": folder, "resident": self._resident}


def make(
    cells: int,
    capacity: int,
    folder: str | os.PathLike[str] | None = None,
    resident: int = RESIDENT_NBYTES,
    path: str | os.PathLike[str] | None = None,
    reopen: bool = False,
) -> MmapHeap:
    """Make a heap whose file vanishes with it; or, with a ``path``, one that outlives the process."""
    if path is None:
        if reopen:
            raise ParameterError("heap 'mmap'", "reopen", reopen, "there is nothing to reopen without a path")
        return MmapHeap(cells, capacity, folder, resident)
    if folder is not None:
        raise ParameterError("heap 'mmap'", "folder", folder, "the path says where the file is")
    from sb3_extra_buffers.heaps.durable import DurableHeap

    return DurableHeap(cells, capacity, path, resident, reopen)


@hookimpl
def sb3_extra_buffers_heap() -> HeapPlugin:
    return HeapPlugin(
        protocol=1,
        factory=make,
        summary="A ring in a file, for buffers larger than memory",
        required=("capacity",),
        parameters={"folder": None, "resident": RESIDENT_NBYTES, "path": None, "reopen": False},
        fits_worst_case=True,
        local=("folder",),
    )
