"""``Passage``: bytes of a mapped file on their way into another one."""

from __future__ import annotations

import mmap
from contextlib import suppress
from typing import Any

from numpy.typing import NDArray

from sb3_extra_buffers.memory import address_of, mapping_of

#: A fault maps the pages around it that are in memory anyway: up to this much, on Linux. So some of those behind the
#: place that is read are mapped again.
_AROUND_NBYTES = 1 << 16


class Passage:
    """Asks the system for what will be read next, and lets go of what was: or a file that was mapped in order to hold
    little of it in memory would be held as a whole by whoever copies it. What lies in other memory is left alone.

    :param array: what is read from its beginning to its end
    """

    def __init__(self, array: NDArray[Any]) -> None:
        mapping = mapping_of(array)
        # Of memory that can be written to, letting go would lose what was written.
        self._mapping = mapping if mapping is not None and memoryview(mapping).readonly else None
        self._begin = 0 if self._mapping is None else array.ctypes.data - address_of(self._mapping)

    def ahead(self, begin: int, nbytes: int) -> None:
        """These bytes are about to be read.

        :param begin: the first, counted from the beginning of the array
        :param nbytes: how many
        """
        # A mapping that is marked as read at random would be read page by page.
        self._advise("MADV_WILLNEED", begin, nbytes)

    def behind(self, begin: int, nbytes: int) -> None:
        """These bytes were read.

        :param begin: the first, counted from the beginning of the array
        :param nbytes: how many
        """
        around = min(_AROUND_NBYTES, self._begin + begin)
        self._advise("MADV_DONTNEED", begin - around, nbytes + around)

    def _advise(self, option: str, begin: int, nbytes: int) -> None:
        code = getattr(mmap, option, None)
        if self._mapping is not None and code is not None:
            end = self._begin + begin + nbytes
            first = (self._begin + begin) // mmap.PAGESIZE * mmap.PAGESIZE
            with suppress(OSError):  # it was only advice
                self._mapping.madvise(code, first, end - first)
