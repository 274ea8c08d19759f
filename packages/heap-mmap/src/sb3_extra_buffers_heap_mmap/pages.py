"""Pages of mapped files: advice to the operating system, and a limit on how many a process holds in memory."""

from __future__ import annotations

import mmap
import os
from contextlib import suppress

import numpy as np

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.heaps.block import SavedBytes
from sb3_extra_buffers.memory import Indices, address_of, mapping_of, publish, untouched

#: A page fault also maps neighbouring pages that are in memory already: up to this much, aligned to it, on Linux.
WINDOW_NBYTES = 1 << 16


def merged(begins: Indices, ends: Indices, unit: int) -> tuple[Indices, Indices]:
    """Ranges of whole units that cover these ranges of bytes, in order, with no two adjacent: first units and sizes.

    The given ranges are in any order, none of them empty. All ends are exclusive.
    """
    if not len(begins):
        return begins, ends
    order = np.argsort(begins)
    firsts, behind = begins[order] // unit, np.maximum.accumulate((ends[order] - 1) // unit + 1)
    apart = firsts[1:] > behind[:-1]
    firsts = firsts[np.concatenate([[True], apart])]
    return firsts, behind[np.concatenate([apart, [True]])] - firsts


class Advice:
    """Advice about one mapped file that is read at random, batch by batch. No effect on systems without madvise.

    :param mapping: the whole file, mapped
    :param file: its descriptor; ``None`` if it is closed
    """

    def __init__(self, mapping: mmap.mmap, file: int | None = None) -> None:
        self._mapping, self._file = mapping, file
        # By default a page fault reads 128 KB; a payload needs a few pages.
        self._advise("MADV_RANDOM")

    def will_need(self, begins: Indices, ends: Indices) -> None:
        """Start reading these ranges of bytes in the file, all at the same time."""
        firsts, sizes = merged(begins, ends, mmap.PAGESIZE)
        for first, size in zip(firsts.tolist(), sizes.tolist()):
            self.will_need_pages(first * mmap.PAGESIZE, size * mmap.PAGESIZE)

    def will_need_pages(self, place: int, nbytes: int) -> None:
        """Start reading whole pages, from the byte ``place`` of the file on."""
        if self._file is not None and hasattr(os, "posix_fadvise"):
            with suppress(OSError):  # advice may fail; reading will report what is wrong
                os.posix_fadvise(self._file, place, nbytes, os.POSIX_FADV_WILLNEED)
        else:
            self._advise("MADV_WILLNEED", place, min(nbytes, len(self._mapping) - place))

    def let_go(self) -> None:
        """Drop all pages from the memory of this process. Reading them again maps them from the system's cache."""
        self._advise("MADV_DONTNEED")

    def _advise(self, option: str, *part: int) -> None:
        code = getattr(mmap, option, None)
        if code is not None:
            with suppress(OSError):
                self._mapping.madvise(code, *part)


class SavedPages:
    """The heap's own file and the checkpoint files that it was loaded from, as one range of bytes with one limit.

    The own file comes first, then each piece of a checkpoint file, in a window of its own.

    :param saved: the pieces of checkpoint files
    """

    def __init__(self, own: Advice, own_nbytes: int, saved: SavedBytes) -> None:
        self._own, self._saved = own, saved
        self._advices: dict[int, Advice] = {}
        firsts, insides = [], []
        #: The size of all files together.
        self.nbytes = own_nbytes
        for number, content in enumerate(saved.contents):
            # One window between two pieces stays free, so that no range of pages covers two files.
            firsts.append((self.nbytes // WINDOW_NBYTES + 2) * WINDOW_NBYTES + content.ctypes.data % WINDOW_NBYTES)
            self.nbytes = firsts[-1] + len(content)
            mapping = mapping_of(content)
            insides.append(0 if mapping is None else content.ctypes.data - address_of(mapping))
            if mapping is not None:
                self._advices[number] = Advice(mapping)
        #: First bytes of the pieces in the joint range, and in their own files.
        self._firsts, self._insides = np.array(firsts, np.int64), np.array(insides, np.int64)

    def let_go(self) -> None:
        """Drop all pages of all files from the memory of this process."""
        for advice in (self._own, *self._advices.values()):
            advice.let_go()

    def places(self, starts: Indices) -> Indices:
        """Offsets of loaded payloads in the joint range."""
        numbers, offsets = self._saved.places(starts)
        found: Indices = self._firsts[numbers] + offsets
        return found

    def place(self, start: int) -> int:
        """The offset of one loaded payload in the joint range."""
        number, offset = self._saved.place(start)
        return int(self._firsts[number]) + offset

    def will_need(self, begins: Indices, ends: Indices) -> None:
        """Start reading these bytes of checkpoint files, given in the joint range, all at the same time."""
        firsts, sizes = (numbers * mmap.PAGESIZE for numbers in merged(begins, ends, mmap.PAGESIZE))
        # Found by its last byte: a range of whole pages may begin before its piece, but never ends before it.
        numbers = np.searchsorted(self._firsts, firsts + sizes - 1, "right") - 1
        places = firsts - self._firsts[numbers] + self._insides[numbers]
        for number, place, size in zip(numbers.tolist(), places.tolist(), sizes.tolist()):
            if number in self._advices:
                self._advices[number].will_need_pages(place, size)


class ResidentLimit:
    """Counts which windows of the file were read, and drops all pages before they exceed the limit.

    A dropped page is mapped again when it is read, so concurrent readers are safe.

    :param pages: the pages of the file
    :param nbytes: its size
    :param limit: how many bytes of it may be in the memory of this process; 0: no limit
    """

    def __init__(self, pages: Advice | SavedPages, nbytes: int, limit: int) -> None:
        self._pages = pages
        windows = -(-nbytes // WINDOW_NBYTES)
        self._allowed = max(limit // WINDOW_NBYTES, 1) if limit else windows
        #: Whether the file is larger than the limit, and the system can be asked to drop mapped pages.
        self.is_bounded = windows > self._allowed and hasattr(mmap, "MADV_DONTNEED")
        self._is_touched = untouched(windows if self.is_bounded else 0, np.bool_)
        self._count = 0

    @property
    def nbytes(self) -> int:
        return self._is_touched.nbytes

    def touch(self, begins: Indices, ends: Indices) -> None:
        """Note that these ranges of bytes in the file will be read."""
        if not self.is_bounded or not len(begins):
            return
        firsts, sizes = merged(begins, ends, WINDOW_NBYTES)
        windows = np.repeat(firsts - np.cumsum(sizes) + sizes, sizes) + np.arange(int(sizes.sum()))
        count = self._count + len(windows) - int(np.count_nonzero(self._is_touched[windows]))
        is_over = count > self._allowed
        if is_over:  # start over with these
            self._pages.let_go()
        targets, keys = [self._is_touched] * (1 + is_over), [*[slice(None)] * is_over, windows]
        publish(targets, keys, [*[False] * is_over, True], [(self, "_count", len(windows) if is_over else count)])

    def touch_one(self, begin: int, end: int) -> None:
        first, behind = begin // WINDOW_NBYTES, (end - 1) // WINDOW_NBYTES + 1
        if not self._is_touched[first:behind].all():
            self.touch(np.array([begin]), np.array([end]))


def checked_limit(limit: object) -> int:
    """A limit as the user gave it: a number of bytes, 0 for no limit."""
    if isinstance(limit, bool) or not isinstance(limit, (int, np.integer)) or limit < 0:
        allowed = "it must be a number of bytes, or 0 for no limit"
        raise ParameterError("heap 'mmap'", "resident", limit, allowed)
    return int(limit)
