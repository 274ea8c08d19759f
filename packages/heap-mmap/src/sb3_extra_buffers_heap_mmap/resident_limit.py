"""A limit on how much of a mapped file a process holds in memory."""

from __future__ import annotations

import mmap

import numpy as np

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.memory import Indices, publish, untouched
from sb3_extra_buffers_heap_mmap.madvise import WINDOW_NBYTES, Advice, SavedPages, merged


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
        """Memory used for counting."""
        return self._is_touched.nbytes

    def touch(self, begins: Indices, ends: Indices) -> None:
        """Note that these ranges of bytes in the file will be read."""
        if not self.is_bounded or not len(begins):
            return
        firsts, behind = merged(begins, ends, WINDOW_NBYTES)
        sizes = behind - firsts
        windows = np.repeat(firsts - np.cumsum(sizes) + sizes, sizes) + np.arange(int(sizes.sum()))
        count = self._count + len(windows) - int(np.count_nonzero(self._is_touched[windows]))
        is_over = count > self._allowed
        if is_over:  # start over with these
            self._pages.let_go()
        targets, keys = [self._is_touched] * (1 + is_over), [*[slice(None)] * is_over, windows]
        publish(targets, keys, [*[False] * is_over, True], [(self, "_count", len(windows) if is_over else count)])

    def touch_one(self, begin: int, end: int) -> None:
        """Note that one payload will be read."""
        first, behind = begin // WINDOW_NBYTES, (end - 1) // WINDOW_NBYTES + 1
        if not self._is_touched[first:behind].all():
            self.touch(np.array([begin]), np.array([end]))


def checked_limit(limit: object) -> int:
    """A limit as the user gave it: a number of bytes, 0 for no limit."""
    if isinstance(limit, bool) or not isinstance(limit, (int, np.integer)) or limit < 0:
        allowed = "it must be a number of bytes, or 0 for no limit"
        raise ParameterError("heap 'mmap'", "resident", limit, allowed)
    return int(limit)
