"""``memory``: grows in segments, so nothing is ever copied to grow, and gives segments back when they empty."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import HeapFullError
from sb3_extra_buffers.heaps.anonymous import allocate
from sb3_extra_buffers.heaps.plugin import HeapPlugin
from sb3_extra_buffers.heaps.table import TableHeap
from sb3_extra_buffers.registry import Scalar, hookimpl
from sb3_extra_buffers.views import Bytes, Indices, view_bytes

# A position is the number of a segment and an offset into it.
_SHIFT = 32
_OFFSET = (1 << _SHIFT) - 1
_MIN_SEGMENT = 1 << 16
_MAX_SEGMENT = 1 << 26
#: New segments are this fraction of the live bytes: what is partly dead or partly unused stays a few per cent.
_SEGMENTS_PER_LIVE = 32


@dataclass(eq=False)  # a segment equals itself; comparing arrays would fail
class _Segment:
    data: Bytes
    view: memoryview
    used: int = 0
    cells: int = 0


#: Where a segment was given back: it has no bytes, so every request to read from it lies outside.
_GONE = _Segment(np.empty(0, np.uint8), memoryview(b""))


class MemoryHeap(TableHeap):
    """Payloads in anonymous memory that grows with them.

    Cells that are overwritten in the order in which they were written, as a replay buffer does, empty whole segments,
    which are reused: nothing moves. Cells overwritten in any other order leave holes; once more than half of the used
    bytes are holes, the emptiest segment's payloads are moved together.

    :param cells: how many cells there are
    """

    label = "memory"

    def __init__(self, cells: int) -> None:
        super().__init__(cells)
        self._segments: list[_Segment] = []
        self._spare: list[_Segment] = []
        self._used = 0  # bytes written into segments, alive or dead
        self._current = self._open(_MIN_SEGMENT)

    @property
    def capacity(self) -> int:
        return sum(segment.data.nbytes for segment in (*self._segments, *self._spare))

    def view(self, start: int, length: int, /) -> memoryview:
        number, offset = start >> _SHIFT, start & _OFFSET
        segment = self._segments[number] if 0 <= number < len(self._segments) else _GONE
        if length < 1 or offset + length > segment.used:
            raise self._outside(start, length)
        return segment.view[offset : offset + length]

    def addresses(self, starts: Indices, lengths: Indices, /) -> NDArray[np.uint64]:
        numbers, offsets = starts >> _SHIFT, starts & _OFFSET
        known = (starts >= 0) & (numbers < len(self._limits)) & (lengths > 0)
        # Not «offset + length > limit»: a huge length would overflow and look small.
        outside = ~known | (lengths > self._limits[np.where(known, numbers, 0)] - offsets)
        if outside.any():
            bad = int(np.argmax(outside))
            raise self._outside(int(starts[bad]), int(lengths[bad]))
        found: NDArray[np.uint64] = self._bases[numbers] + offsets.astype(np.uint64)
        return found

    def clear(self) -> None:
        super().clear()
        # Kept for reuse: a rollout buffer is cleared after each rollout and filled again at once.
        self._spare += [segment for segment in self._segments if segment is not _GONE]
        self._segments.clear()
        self._used = 0
        self._current = self._open(_MIN_SEGMENT)

    def _parameters(self) -> dict[str, Scalar]:
        return {}

    def _note_extents(self) -> None:
        """Keep where segments begin and how far they are used at hand for :meth:`addresses`, called for each batch."""
        segments = self._segments
        self._bases = np.array([segment.data.ctypes.data for segment in segments], np.uint64)
        self._limits = np.array([segment.used for segment in segments], np.int64)

    def _store(self, cells: list[int], payloads: memoryview, lengths: list[int]) -> None:
        starts = self._place(payloads, lengths)
        self._release(self._forget(cells))
        self._record(cells, starts, lengths)
        if self._used - self._live > self._live + 2 * _MIN_SEGMENT:
            with suppress(HeapFullError):  # the row is stored; without memory to move in, holes stay for now
                self._close_holes()

    def _place(self, payloads: memoryview, lengths: list[int]) -> list[int]:
        """Copy payloads behind what is there, into as many segments as it takes, and return their positions."""
        starts: list[int] = []
        done, count, copied = 0, len(lengths), 0
        while True:
            number, segment = self._current, self._segments[self._current]
            base, used, room = number << _SHIFT, segment.used, len(segment.view)
            end, first = used, done
            while done < count and (after := end + lengths[done]) <= room:
                starts.append(base + end)
                end = after
                done += 1
            size = end - used
            segment.view[used:end] = payloads[copied : copied + size]
            segment.used = end
            segment.cells += done - first
            self._limits[number] = end
            self._used += size
            if done == count:
                return starts
            copied += size
            self._replace_current(lengths[done], starts)

    def _replace_current(self, at_least: int, placed: list[int]) -> None:
        """Go on in another segment, or at the beginning of this one if nothing in it is alive."""
        number, segment = self._current, self._segments[self._current]
        if not segment.cells and len(segment.view) >= at_least:
            self._used -= segment.used
            segment.used = 0
            return
        try:
            self._current = self._open(at_least)
        except HeapFullError:
            self._release(placed)  # the row is refused as a whole
            raise
        if not segment.cells:
            self._drop(number)

    def _open(self, at_least: int) -> int:
        """Make a segment current that has room for ``at_least`` bytes, a spare one if possible."""
        wanted = max(at_least, min(max(self._live // _SEGMENTS_PER_LIVE, _MIN_SEGMENT), _MAX_SEGMENT))
        segment = next((spare for spare in self._spare if len(spare.data) >= at_least), None)
        if segment is None:
            data = allocate(self.label, -(-wanted // 4096) * 4096)
            segment = _Segment(data, view_bytes(self.label, "segment", data))
        else:
            self._spare.remove(segment)
            segment.used = segment.cells = 0
        if _GONE in self._segments:
            number = self._segments.index(_GONE)
            self._segments[number] = segment
        else:
            number = len(self._segments)
            self._segments.append(segment)
        self._note_extents()
        return number

    def _release(self, starts: list[int]) -> None:
        """Note that the payloads at these positions are dead, and reuse or return the segments that this empties."""
        for start in starts:
            if start < 0:
                continue
            number = start >> _SHIFT
            segment = self._segments[number]
            segment.cells -= 1
            if not segment.cells and number != self._current:
                self._drop(number)

    def _drop(self, number: int) -> None:
        segment = self._segments[number]
        self._segments[number] = _GONE
        self._used -= segment.used
        self._note_extents()
        # One spare turns the steady state of a replay buffer into plain reuse; more would be hoarding.
        if not self._spare:
            self._spare.append(segment)

    def _close_holes(self) -> None:
        """Move the payloads of the emptiest segment behind the others, which frees it."""
        closed = [n for n, segment in enumerate(self._segments) if segment is not _GONE and n != self._current]
        if not closed:
            return
        emptiest = min(closed, key=lambda number: self._segments[number].cells / self._segments[number].used)
        cells = np.flatnonzero((self._lengths > 0) & ((self._starts >> _SHIFT) == emptiest)).tolist()
        lengths = [self._length_of[cell] for cell in cells]
        moved = b"".join(self.view(self._start_of[cell], length) for cell, length in zip(cells, lengths))
        starts = self._place(memoryview(moved), lengths)
        self._release(self._forget(cells))
        self._record(cells, starts, lengths)
        self.moves += 1


@hookimpl
def sb3_extra_buffers_heap() -> HeapPlugin:
    return HeapPlugin(protocol=1, factory=MemoryHeap, summary="Memory that grows in segments with what is stored")
