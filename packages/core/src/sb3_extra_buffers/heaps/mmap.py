"""``mmap``: the ring in a file, for buffers that are larger than memory."""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
import weakref
from pathlib import Path

import numpy as np

from sb3_extra_buffers.errors import HeapFullError, HeapStateError, ParameterError
from sb3_extra_buffers.heaps.plugin import HeapPlugin
from sb3_extra_buffers.heaps.ring import RingHeap
from sb3_extra_buffers.registry import Scalar, hookimpl
from sb3_extra_buffers.views import Bytes, Indices


class MmapHeap(RingHeap):
    """A byte ring in a file of fixed size. The file has no name: it vanishes with the heap, also after a crash.

    Disk space is claimed when the heap is made, so that a full disk is an error there and not nine hours later.
    Payloads are written through the file and read through the mapping; the operating system keeps in memory what is
    used and drops the rest.

    :param cells: how many cells there are
    :param capacity: the size of the file, in bytes
    :param folder: where to put the file; the system's temporary folder if left out
    """

    label = "mmap"
    #: Whether the room for payloads is part of ``nbytes``. What says nothing about it has them in memory.
    payloads_in_memory = False

    def __init__(self, cells: int, capacity: int, folder: str | os.PathLike[str] | None = None) -> None:
        if folder is not None and not (isinstance(folder, (str, os.PathLike)) and Path(folder).is_dir()):
            raise ParameterError("heap 'mmap'", "folder", folder, "it must be a folder that exists")
        self._asked_folder = folder
        self._folder = Path(tempfile.gettempdir() if folder is None else folder)
        self._owner = os.getpid()
        super().__init__(cells, capacity)

    @property
    def nbytes(self) -> int:
        return self._index_nbytes()  # the payloads are in the file

    def reserve(self, cells: Indices, worst_case_bytes: int, /) -> Bytes:
        if os.getpid() != self._owner:
            hint = "Make a heap of its own in the child, or pickle this one."
            raise HeapStateError(
                self.label, "write", "this process was forked and shares the file with its parent", hint
            )
        return super().reserve(cells, worst_case_bytes)

    def _allocate(self) -> Bytes:
        try:
            # Open as long as the heap lives, so no «with».
            self._file = tempfile.TemporaryFile(dir=self._folder, prefix="sb3-extra-buffers-", buffering=0)  # noqa: SIM115
        except OSError as error:
            found, hint = str(error.strerror), "Choose a folder in which files can be made."
            raise HeapStateError(self.label, f"make a file in {self._folder}", found, hint) from error
        weakref.finalize(self, self._file.close)
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self._file.fileno(), 0, self._capacity)
            else:
                self._file.truncate(self._capacity)
            return np.frombuffer(mmap.mmap(self._file.fileno(), self._capacity, access=mmap.ACCESS_READ), np.uint8)
        except OverflowError as error:
            raise HeapFullError(self.label, self._capacity, 0, "No file can be as large.") from error
        except OSError as error:
            raise self._disk_full(self._capacity, error) from error

    def _write(self, place: int, data: memoryview) -> None:
        # Not through the mapping: there a full disk is a signal that kills the process, here it is an exception.
        rest = data
        self._file.seek(place)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            raise self._disk_full(len(data), error) from error

    def _disk_full(self, needed: int, error: OSError) -> HeapFullError:
        free = shutil.disk_usage(self._folder).free
        hint = (
            f"Writing in {self._folder} failed ({error.strerror}); {free} bytes are free there. Choose another folder."
        )
        return HeapFullError(self.label, needed, self._capacity, hint)

    def _parameters(self) -> dict[str, Scalar]:
        # As it was asked for: another machine has its temporary folder elsewhere.
        folder = None if self._asked_folder is None else os.fspath(self._asked_folder)
        return {**super()._parameters(), "folder": folder}


@hookimpl
def sb3_extra_buffers_heap() -> HeapPlugin:
    return HeapPlugin(
        protocol=1,
        factory=MmapHeap,
        summary="A ring in a file, for buffers larger than memory",
        required=("capacity",),
        parameters={"folder": None},
    )
