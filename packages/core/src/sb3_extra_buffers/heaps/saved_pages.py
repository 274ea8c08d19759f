"""``SavedPages``: how files that a heap was loaded from are read, beside its own file."""

from __future__ import annotations

import mmap

import numpy as np

from sb3_extra_buffers.checkpoints.memory_map import address_of, mapping_of
from sb3_extra_buffers.heaps.advice import WINDOW_NBYTES, Advice
from sb3_extra_buffers.heaps.page_ranges import merged
from sb3_extra_buffers.heaps.saved_bytes import SavedBytes
from sb3_extra_buffers.memory import Indices


class SavedPages:
    """All files of a heap as one: behind its own come the pieces that were saved, so one limit counts for all of them.

    Each piece begins in a window of its own, where it does in memory, and none touches another.

    :param own: of the heap's file
    :param own_nbytes: its size
    :param saved: what was loaded
    """

    def __init__(self, own: Advice, own_nbytes: int, saved: SavedBytes) -> None:
        self._own, self._saved = own, saved
        self._advices: dict[int, Advice] = {}
        firsts, insides = [], []
        #: The size of all.
        self.nbytes = own_nbytes
        for number, content in enumerate(saved.contents):
            # A window between two pieces stays free, so that ranges of pages are never those of two files.
            firsts.append((self.nbytes // WINDOW_NBYTES + 2) * WINDOW_NBYTES + content.ctypes.data % WINDOW_NBYTES)
            self.nbytes = firsts[-1] + len(content)
            mapping = mapping_of(content)
            insides.append(0 if mapping is None else content.ctypes.data - address_of(mapping))
            if mapping is not None:
                self._advices[number] = Advice(mapping)
        #: Where pieces begin among all bytes, and where in their own files.
        self._firsts, self._insides = np.array(firsts, np.int64), np.array(insides, np.int64)

    @property
    def can_let_go(self) -> bool:
        """Whether the system can be asked to let go of mapped pages."""
        return self._own.can_let_go

    def let_go(self) -> None:
        """No page of any file needs to stay in the memory of this process."""
        for advice in (self._own, *self._advices.values()):
            advice.let_go()

    def places(self, starts: Indices) -> Indices:
        """Where payloads are among all bytes."""
        numbers, offsets = self._saved.places(starts)
        found: Indices = self._firsts[numbers] + offsets
        return found

    def place(self, start: int) -> int:
        """What :meth:`places` says, of one payload."""
        number, offset = self._saved.place(start)
        return int(self._firsts[number]) + offset

    def will_need(self, begins: Indices, ends: Indices) -> None:
        """These bytes of pieces will be read now, all of them.

        :param begins: where they begin among all bytes, in any order
        :param ends: behind their last bytes
        """
        if not len(begins):
            return
        firsts, behind = merged(begins, ends, mmap.PAGESIZE)
        sizes = (behind - firsts) * mmap.PAGESIZE
        # By its last byte: a range of whole pages may begin before the piece, never end before it.
        numbers = np.searchsorted(self._firsts, behind * mmap.PAGESIZE - 1, "right") - 1
        places = firsts * mmap.PAGESIZE - self._firsts[numbers] + self._insides[numbers]
        for number, place, size in zip(numbers.tolist(), places.tolist(), sizes.tolist()):
            if number in self._advices:
                self._advices[number].will_need_pages(place, size)
