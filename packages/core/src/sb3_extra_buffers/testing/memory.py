"""Memory that notices what should not be done to it."""

from __future__ import annotations

import numpy as np

from sb3_extra_buffers.memory import Bytes
from sb3_extra_buffers.testing.rule import expect

_BAND = 64


class GuardedRows:
    """Rows of writable bytes between two bands that must stay as they are.

    :param rows: how many rows
    :param nbytes: bytes per row
    :param offset: how many bytes to shift the rows, to take away any alignment
    :param fill: what the rows hold before anybody writes to them
    """

    def __init__(self, rows: int, nbytes: int, offset: int = 0, fill: int = 0xA5) -> None:
        size, begin = rows * nbytes, _BAND + offset
        self._memory = np.resize(np.arange(251, dtype=np.uint8), begin + size + _BAND)
        self._memory[begin : begin + size] = fill
        self._inside = slice(begin, begin + size)
        self._before = self._memory.copy()
        self.rows: Bytes = self._memory[self._inside].reshape(rows, nbytes)

    @property
    def row(self) -> Bytes:
        """The first row."""
        row: Bytes = self.rows[0]
        return row

    def expect_bands_intact(self, what: str) -> None:
        """Fail if anything beside the rows was written to."""
        changed = self._memory != self._before
        changed[self._inside] = False
        expect(not changed.any(), f"{what} wrote {int(changed.sum())} bytes outside its output")

    def expect_untouched(self, what: str) -> None:
        """Fail if anything at all was written to."""
        self.expect_bands_intact(what)
        expect((self._memory == self._before).all(), f"{what} wrote to its output although it was refused")


def at_odd_offset(data: Bytes) -> Bytes:
    """A read-only copy at an address that no word is aligned to."""
    room = np.empty(len(data) + 8, np.uint8)
    shift = 1 + (-room.ctypes.data % 8)
    copy = room[shift : shift + len(data)]
    copy[:] = data
    copy.flags.writeable = False
    return copy
