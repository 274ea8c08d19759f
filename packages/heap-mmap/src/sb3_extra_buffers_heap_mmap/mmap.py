"""``mmap``: a ring in a file, for buffers that are larger than memory."""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import BinaryIO

import numpy as np

from sb3_extra_buffers.errors import HeapFullError, HeapStateError, ParameterError
from sb3_extra_buffers.heaps import HeapPlugin, hookimpl
from sb3_extra_buffers.heaps.block import Block, SavedBytes
from sb3_extra_buffers.heaps.ring import RingHeap
from sb3_extra_buffers.memory import Attribute, Bytes, ByteSource, Indices, write_all
from sb3_extra_buffers.registry import Scalar
from sb3_extra_buffers_heap_mmap.pages import Advice, ResidentLimit, SavedPages, checked_limit

#: Default limit for mapped pages in the memory of the process. A smaller file is mapped once and stays.
RESIDENT_NBYTES = 1 << 30


class MmapHeap(RingHeap):
    """A byte ring in a file of fixed size. The file has no name: it disappears with the heap, also after a crash.

    Disk space is claimed when the heap is created, so that a full disk is an error at that point and not hours later.
    Payloads are written through the file and read through the mapping. The operating system is told the positions of
    all payloads of a batch at once. Mapped pages beyond ``resident`` bytes are dropped.

    :param cells: number of cells
    :param capacity: size of the file: how many bytes of payloads it can hold
    :param folder: where to create the file; default: the system's temporary folder
    :param resident: how many bytes of the file may be in the memory of the process; 0: no limit
    """

    label = "mmap"
    #: The room for payloads is a file, and no part of ``nbytes``.
    payloads_in_memory = False

    def __init__(
        self, cells: int, capacity: int, folder: str | os.PathLike[str] | None = None, resident: int = RESIDENT_NBYTES
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
        return self._index_nbytes()

    @property
    def moves(self) -> int | None:
        return None  # so that every batch is located again, and read ahead by bring()

    def bring(self, starts: Indices, lengths: Indices, /) -> tuple[ByteSource, Indices]:
        """Start reading the payloads of a batch from the disk, all at the same time."""
        pages, saved = self._pages, self._saved
        if pages is None or saved is None:
            begins, ends = self._in_file(starts, lengths)
            self._resident_limit.touch(begins, ends)
        else:  # loaded payloads are in files of their own
            is_here = starts >= saved.end
            begins, ends = self._in_file(starts[is_here], lengths[is_here])
            others = pages.places(starts[~is_here])
            others_ends = others + lengths[~is_here]
            self._resident_limit.touch(np.concatenate([begins, others]), np.concatenate([ends, others_ends]))
            pages.will_need(others, others_ends)
        self._advice.will_need(begins, ends)
        return self, starts

    def view(self, start: int, length: int, /) -> memoryview:
        found = super().view(start, length)
        if self._resident_limit.is_bounded:
            pages, saved = self._pages, self._saved
            is_loaded = pages is not None and saved is not None and start < saved.end
            place = pages.place(start) if pages is not None and is_loaded else start % self._capacity
            self._resident_limit.touch_one(place, place + length)
        return found

    def _in_file(self, starts: Indices, lengths: Indices) -> tuple[Indices, Indices]:
        places = starts % self._capacity
        return places, places + np.minimum(lengths, self._capacity - places)

    def reserve(self, cells: Indices, worst_case_bytes: int, /) -> Bytes:
        if os.getpid() != self._owner:
            found = "this process was forked and shares the file with its parent"
            raise HeapStateError(self.label, "write", found, "Create a heap in the child, or pickle this one.")
        return super().reserve(cells, worst_case_bytes)

    def _allocate(self) -> Block:
        self._file = self._open_file()
        weakref.finalize(self, self._file.close)
        try:
            mapping = mmap.mmap(self._file.fileno(), self._capacity, access=mmap.ACCESS_READ)
        except OSError as error:
            raise self._disk_full(self._capacity, error) from error
        self._advice = Advice(mapping, self._file.fileno())
        self._resident_limit = ResidentLimit(self._advice, len(mapping), self._resident)
        self._pages: SavedPages | None = None
        return Block(np.frombuffer(mapping, np.uint8))

    def _open_file(self) -> BinaryIO:
        """Create the file at its full size."""
        try:
            # Open as long as the heap exists, so not in a with statement.
            file = tempfile.TemporaryFile(dir=self._folder, prefix="sb3-extra-buffers-", buffering=0)  # noqa: SIM115
        except OSError as error:
            found, hint = str(error.strerror), "Choose a folder in which files can be created."
            raise HeapStateError(self.label, f"create a file in {self._folder}", found, hint) from error
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, self._capacity)
            else:
                file.truncate(self._capacity)
        except OverflowError as error:
            file.close()
            raise HeapFullError(self.label, self._capacity, 0, "No file can be this large.") from error
        except OSError as error:
            file.close()
            raise self._disk_full(self._capacity, error) from error
        return file

    def _write(self, place: int, data: memoryview) -> None:
        # Not through the mapping: there, a full disk is a signal that kills the process; here it is an exception.
        try:
            self._file.seek(place)
            write_all(self._file, data)
        except OSError as error:
            raise self._disk_full(len(data), error) from error

    def _keep(self, saved: SavedBytes, starts: Indices, lengths: Indices) -> None:
        super()._keep(saved, starts, lengths)
        if self._saved is not None:
            self._pages = SavedPages(self._advice, self._capacity, self._saved)
            self._pages.let_go()  # pages that were read for the check
            self._resident_limit = ResidentLimit(self._pages, self._pages.nbytes, self._resident)

    def _leaving_saved(self) -> list[Attribute]:
        changes = super()._leaving_saved()
        if self._pages is not None:
            self._pages.let_go()
            limit = ResidentLimit(self._advice, self._capacity, self._resident)
            changes += [(self, "_pages", None), (self, "_resident_limit", limit)]
        return changes

    def _disk_full(self, needed: int, error: OSError) -> HeapFullError:
        free = shutil.disk_usage(self._folder).free
        failed = f"Writing in {self._folder} failed ({error.strerror}); {free} bytes are free there."
        return HeapFullError(self.label, needed, self._capacity, f"{failed} Choose another folder.")

    def _index_nbytes(self) -> int:
        return super()._index_nbytes() + self._resident_limit.nbytes

    def _parameters(self) -> dict[str, Scalar]:
        # The folder as the user gave it: another machine has its temporary folder elsewhere.
        folder = None if self._asked_folder is None else os.fspath(self._asked_folder)
        return {**super()._parameters(), "folder": folder, "resident": self._resident}


@hookimpl
def sb3_extra_buffers_heap() -> HeapPlugin:
    return HeapPlugin(
        protocol=1,
        factory=MmapHeap,
        summary="A ring in a file, for buffers larger than memory",
        required=("capacity",),
        parameters={"folder": None, "resident": RESIDENT_NBYTES},
        fits_worst_case=True,
        local=("folder",),
    )
