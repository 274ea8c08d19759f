"""Where payloads lie: blocks of memory, and pieces of checkpoint files that a heap takes over without a copy."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import HeapFullError
from sb3_extra_buffers.heaps.state import Piece, State, StateError
from sb3_extra_buffers.memory import Bytes, Indices, pages

# A position is the number of a segment and an offset in it, as in the saved heap.
_SHIFT = 32
#: Payloads that are checked together: their data stays in the cache of a core.
_AT_ONCE = 1 << 15
#: Segments are numbered anew if more numbers than these, and than there are segments, are unused.
_SPARE_NUMBERS = 256


def allocate(label: str, nbytes: int) -> Bytes:
    """Allocate zeroed memory from the operating system, which gets it back as soon as the array is dropped."""
    try:
        return np.frombuffer(pages(nbytes), np.uint8)
    except MemoryError as error:
        hint = "The operating system refused the memory; use a smaller buffer, another codec, or a heap in a file."
        raise HeapFullError(label, nbytes, 0, hint) from error


class Block:
    """Memory of this process. A heap whose payloads are elsewhere has blocks of another kind.

    :param data: the memory
    :param reusable: whether it may be written again when its content is no longer needed. A part of a mapped checkpoint
        file is not: it is read in place
    """

    reusable = True

    def __init__(self, data: Bytes, reusable: bool = True) -> None:
        self.data, self.reusable = data, reusable
        self.nbytes = len(data)
        #: The address of the first byte.
        self.address = int(data.ctypes.data)
        self._view = memoryview(data)

    @classmethod
    def anonymous(cls, label: str, nbytes: int) -> Block:
        """A block of new memory from the operating system."""
        return cls(allocate(label, nbytes))

    def view(self, place: int, length: int) -> memoryview:
        """A view of some bytes."""
        return self._view[place : place + length]

    def write(self, place: int, payloads: memoryview) -> None:
        """Copy bytes into the block, where there is room for them."""
        self._view[place : place + len(payloads)] = payloads


@dataclass(frozen=True)
class LogPart:
    """A piece of a saved segment, which becomes a segment of its own.

    :param old: position of its first byte in the saved heap
    :param log: number of the log that the segment was saved in
    :param piece: the bytes, and the position of the first in the log
    """

    old: int
    log: int
    piece: Piece


def log_parts(state: State) -> list[LogPart]:
    """All pieces of all segments, in the order of their positions."""
    found: list[LogPart] = []
    for number, log, begin, nbytes in (_segment(entry) for entry in state.fact("segments", list)):
        if found and number << _SHIFT <= found[-1].old:
            raise StateError("segments are out of order")
        pieces = covering(state.pieces.get(str(log), ()), begin, begin + nbytes)
        found += [LogPart((number << _SHIFT) + piece.begin - begin, log, piece) for piece in pieces]
    return found


def _segment(entry: object) -> list[int]:
    fits = isinstance(entry, list) and len(entry) == 4 and all(type(number) is int for number in entry)
    if not fits or not all(0 <= number < 1 << limit for number, limit in zip(entry, (31, 62, 62, _SHIFT))):  # type: ignore[call-overload]
        raise StateError(f"a segment is {entry!r}")
    return entry  # type: ignore[return-value]


def covering(pieces: Iterable[Piece], begin: int, end: int) -> list[Piece]:
    """The pieces of a log from one position to another, without gaps."""
    found: list[Piece] = []
    for piece in pieces:
        behind = piece.begin + len(piece.raw)
        if behind <= begin or piece.begin >= end:
            continue
        if piece.begin < begin:  # older bytes are not needed
            piece = Piece(begin, piece.raw[begin - piece.begin :], piece.unread)
        if piece.begin != (found[-1].begin + len(found[-1].raw) if found else begin) or behind > end:
            raise StateError(f"bytes from {piece.begin} to {behind} have the wrong position")
        found.append(piece)
    if (found[-1].begin + len(found[-1].raw) if found else begin) != end:
        raise StateError(f"bytes up to {end} are missing")
    return found


def adopt(parts: list[LogPart], starts: Indices, lengths: Indices) -> list[tuple[int, LogPart, int]]:
    """Turn each part into a segment: its number, the part, its number of payloads. Payloads in no part are refused.

    A segment that was saved in one piece keeps its number, so its payloads keep their positions. Positions that change
    are written to ``starts``.

    :param parts: in the order of their positions
    :param starts: saved positions of payloads
    :param lengths: their sizes; 0 for cells without a payload
    """
    olds = np.array([part.old for part in parts], np.int64)
    sizes = np.array([len(part.piece.raw) for part in parts], np.int64)
    numbers, counts = _numbers(olds), np.zeros(len(parts), np.int64)
    shifts = (numbers << _SHIFT) - olds
    for begin in range(0, len(starts), _AT_ONCE):
        held = begin + np.flatnonzero(lengths[begin : begin + _AT_ONCE])
        old = starts[held]
        which = np.searchsorted(olds, old, "right") - 1
        # Not offset + length > size: a huge offset would overflow and look small.
        if len(which) and (which.min() < 0 or (old - olds[which] > sizes[which] - lengths[held]).any()):
            raise StateError("a payload lies outside of all segments")
        counts += np.bincount(which, minlength=len(parts))
        shift = shifts[which]
        if shift.any():  # only then: pages that are not written stay in their file
            starts[held] = old + shift
    # A piece of a segment may hold no live payload.
    return [found for found in zip(numbers.tolist(), parts, counts.tolist()) if found[2]]


def _numbers(olds: Indices) -> Indices:
    """The number of the segment that each part becomes: its own, or a new one for all but the first of a segment."""
    numbers = olds >> _SHIFT
    if not len(olds) or numbers[-1] > 2 * len(olds) + _SPARE_NUMBERS:
        return np.arange(len(olds))
    later = np.flatnonzero(numbers[1:] == numbers[:-1]) + 1
    numbers[later] = numbers[-1] + 1 + np.arange(len(later))
    return numbers


class SavedBytes:
    """A range of positions whose bytes are in pieces of files, which are read in place.

    :param pieces: contiguous, in order
    """

    def __init__(self, pieces: Sequence[Piece]) -> None:
        #: The bytes of the pieces, in order.
        self.contents = [piece.raw for piece in pieces]
        #: Set as long as bytes were not compared with their checksums.
        self.unread = pieces[0].unread if pieces else None
        self._begins = np.array([piece.begin for piece in pieces], np.int64)
        self._bases = np.array([content.ctypes.data for content in self.contents], np.uint64)
        #: The last position, exclusive.
        self.end = pieces[-1].begin + len(pieces[-1].raw) if pieces else 0

    def check(self, starts: Indices, lengths: Indices) -> None:
        """Refuse payloads that do not lie in one piece."""
        numbers = np.searchsorted(self._begins, starts, "right") - 1
        ends = np.append(self._begins[1:], self.end)
        if numbers.min() < 0 or (starts + lengths > ends[numbers]).any():
            raise StateError("a payload lies in two pieces")

    def view(self, start: int, length: int) -> memoryview:
        """The bytes of one payload."""
        if self.unread is not None:
            self.addresses(np.array([start]), np.array([length]))
        number, offset = self.place(start)
        return memoryview(self.contents[number])[offset : offset + length]

    def addresses(self, starts: Indices, lengths: Indices) -> NDArray[np.uint64]:
        """Memory addresses of payloads, which are compared with their checksums."""
        numbers, offsets = self.places(starts)
        found: NDArray[np.uint64] = self._bases[numbers] + offsets.astype(np.uint64)
        unread = self.unread  # another thread may find that nothing is left
        if unread is not None and unread.check(found, lengths):
            self.unread = None
        return found

    def places(self, starts: Indices) -> tuple[Indices, Indices]:
        """The piece of each payload, and the offset in it."""
        numbers = np.searchsorted(self._begins, starts, "right") - 1
        return numbers, starts - self._begins[numbers]

    def place(self, start: int) -> tuple[int, int]:
        """The piece of one payload, and the offset in it."""
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
