"""``SavedBytes``: a stretch of positions whose bytes lie in files, in pieces."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.heaps.state import Piece, StateError
from sb3_extra_buffers.memory import Bytes, Indices


class SavedBytes:
    """Reads payloads where they were saved.

    :param pieces: one behind the other, without gaps
    """

    def __init__(self, pieces: Sequence[Piece]) -> None:
        #: What the pieces hold, one behind the other.
        self.contents = [piece.content for piece in pieces]
        self._begins = np.array([piece.begin for piece in pieces], np.int64)
        self._bases = np.array([content.ctypes.data for content in self.contents], np.uint64)
        #: Behind the last position.
        self.end = pieces[-1].begin + len(pieces[-1].content) if pieces else 0

    def check(self, starts: Indices, lengths: Indices) -> None:
        """Refuse payloads that do not lie in one piece."""
        numbers = np.searchsorted(self._begins, starts, "right") - 1
        ends = np.append(self._begins[1:], self.end)
        if numbers.min() < 0 or (starts + lengths > ends[numbers]).any():
            raise StateError("a payload lies in two pieces")

    def view(self, start: int, length: int) -> memoryview:
        """The bytes of one payload."""
        number, offset = self.place(start)
        return memoryview(self.contents[number])[offset : offset + length]

    def addresses(self, starts: Indices) -> NDArray[np.uint64]:
        """Where payloads are in memory."""
        numbers, offsets = self.places(starts)
        found: NDArray[np.uint64] = self._bases[numbers] + offsets.astype(np.uint64)
        return found

    def places(self, starts: Indices) -> tuple[Indices, Indices]:
        """The number of the piece that each payload lies in, and where in it."""
        numbers = np.searchsorted(self._begins, starts, "right") - 1
        return numbers, starts - self._begins[numbers]

    def place(self, start: int) -> tuple[int, int]:
        """What :meth:`places` says, of one payload."""
        number = bisect_right(self._begins, start) - 1
        return number, start - int(self._begins[number])

    def cut(self, begin: int, end: int) -> list[Bytes]:
        """The bytes from one position to another."""
        found = []
        for first, content in zip(self._begins.tolist(), self.contents):
            low, high = max(begin - first, 0), min(end - first, len(content))
            if low < high:
                found.append(content[low:high])
        return found
