"""Advice to the operating system about mapped files: which pages will be read, and which need not stay in memory."""

from __future__ import annotations

import mmap
import os
from contextlib import suppress

import numpy as np

from sb3_extra_buffers.heaps.block import SavedBytes
from sb3_extra_buffers.memory import Indices, address_of, mapping_of

#: A page fault also maps neighbouring pages that are in memory already: up to this much, aligned to it, on Linux.
WINDOW_NBYTES = 1 << 16


def merged(begins: Indices, ends: Indices, unit: int) -> tuple[Indices, Indices]:
    """Ranges of whole units that cover these ranges of bytes, in order, with no two adjacent.

    The given ranges are in any order, none of them empty. All ends are exclusive.
    """
    order = np.argsort(begins)
    firsts, behind = begins[order] // unit, np.maximum.accumulate((ends[order] - 1) // unit + 1)
    apart = firsts[1:] > behind[:-1]
    return firsts[np.concatenate([[True], apart])], behind[np.concatenate([apart, [True]])]


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
        if not len(begins):
            return
        firsts, behind = merged(begins, ends, mmap.PAGESIZE)
        places, sizes = firsts * mmap.PAGESIZE, (behind - firsts) * mmap.PAGESIZE
        for place, size in zip(places.tolist(), sizes.tolist()):
            self.will_need_pages(place, size)

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
        if not len(begins):
            return
        firsts, behind = merged(begins, ends, mmap.PAGESIZE)
        sizes = (behind - firsts) * mmap.PAGESIZE
        # Found by its last byte: a range of whole pages may begin before its piece, but never ends before it.
        numbers = np.searchsorted(self._firsts, behind * mmap.PAGESIZE - 1, "right") - 1
        places = firsts * mmap.PAGESIZE - self._firsts[numbers] + self._insides[numbers]
        for number, place, size in zip(numbers.tolist(), places.tolist(), sizes.tolist()):
            if number in self._advices:
                self._advices[number].will_need_pages(place, size)
