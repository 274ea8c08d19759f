"""What the operating system is told about the file of a heap: what will be read, and what need not stay."""

from __future__ import annotations

import mmap
import os
from contextlib import suppress

from sb3_extra_buffers.heaps.page_ranges import merged
from sb3_extra_buffers.memory import Indices

#: A fault on a page maps those around it that are in memory anyway: up to this much, aligned to it, on Linux.
WINDOW_NBYTES = 1 << 16


class Advice:
    """A mapped file that is read at random, batch by batch. Systems that take no advice are left alone.

    :param mapping: the whole file, mapped
    :param file: its number; ``None`` if it is closed
    """

    def __init__(self, mapping: mmap.mmap, file: int | None = None) -> None:
        self._mapping = mapping
        self._file = file
        # Otherwise a fault reads 128 KB, of which a payload needs a few pages.
        self._advise("MADV_RANDOM")

    def will_need(self, begins: Indices, ends: Indices) -> None:
        """These bytes will be read now, all of them. Reading begins at once, for all at the same time.

        :param begins: where they begin in the file, in any order
        :param ends: behind their last bytes
        """
        if not len(begins):
            return
        firsts, behind = merged(begins, ends, mmap.PAGESIZE)
        places, sizes = firsts * mmap.PAGESIZE, (behind - firsts) * mmap.PAGESIZE
        for place, size in zip(places.tolist(), sizes.tolist()):
            self.will_need_pages(place, size)

    def will_need_pages(self, place: int, nbytes: int) -> None:
        """What :meth:`will_need` does, for whole pages.

        :param place: where they begin in the file
        :param nbytes: their size
        """
        if self._file is not None and hasattr(os, "posix_fadvise"):
            with suppress(OSError):  # it was only advice: reading will show what is wrong
                os.posix_fadvise(self._file, place, nbytes, os.POSIX_FADV_WILLNEED)
        else:
            self._advise("MADV_WILLNEED", place, min(nbytes, len(self._mapping) - place))

    @property
    def can_let_go(self) -> bool:
        """Whether the system can be asked to let go of mapped pages."""
        return hasattr(mmap, "MADV_DONTNEED")

    def let_go(self) -> None:
        """No page needs to stay in the memory of this process. What is read again comes from the system's cache."""
        self._advise("MADV_DONTNEED")

    def _advise(self, option: str, *part: int) -> None:
        code = getattr(mmap, option, None)
        if code is not None:
            with suppress(OSError):
                self._mapping.madvise(code, *part)
