"""``memory``: grows in segments, so nothing is ever copied to grow, and gives segments back when they empty."""

from __future__ import annotations

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
_MIN_SEGMENT = 1 << 18
_MAX_SEGMENT = 1 << 26
#: New segments are this fraction of the live bytes: what is partly dead or partly unused stays a few per cent.
_SEGMENTS_PER_LIVE = 32


@dataclass(eq=False)  # a segment equals itself; comparing arrays would fail
class _Segment:
    data: Bytes
    view: memoryview
    used: int = 0
    cells: int = 0


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
        self._segments: list[_Segment | None] = []
        self._spare: list[_Segment] = []
        self._used = 0  # bytes written into segments, alive or dead
        self._current = self._open(_MIN_SEGMENT)

    @property
    def capacity(self) -> int:
        return sum(segment.data.nbytes for segment in (*self._segments, *self._spare) if segment is not None)

    def view(self, start: int, length: int, /) -> memoryview:
        number, offset = start >> _SHIFT, start & _OFFSET
        segment = self._segments[number] if 0 <= number < len(self._segments) else None
        if segment is None or length < 1 or offset + length > segment.used:
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
        self._spare += [segment for segment in self._segments if segment is not None]
        self._segments.clear()
        self._used = 0
        self._current = self._open(_MIN_SEGMENT)

    def _parameters(self) -> dict[str, Scalar]:
        return {}

    def _note_extents(self) -> None:
        """Keep where segments begin and how far they are used at hand for :meth:`addresses`, called for each batch."""
        segments = self._segments
        self._bases = np.array([0 if s is None else s.data.ctypes.data for s in segments], np.uint64)
        self._limits = np.array([0 if s is None else s.used for s in segments], np.int64)

    def _store(self, cells: Indices, payloads: Bytes, lengths: Indices) -> None:
        starts = self._place(payloads, lengths)
        self._release(self._forget(cells))
        self._record(cells, starts, lengths)
        if self._used - self._live > self._live + 2 * _MIN_SEGMENT:
            self._close_holes()

    def _place(self, payloads: Bytes, lengths: Indices) -> Indices:
        """Copy payloads behind what is there, into as many segments as it takes, and return their positions."""
        ends = lengths.cumsum()
        starts = ends - lengths
        source, done, copied = memoryview(payloads), 0, 0
        while done < len(lengths):
            number, segment = self._current, self._segment(self._current)
            room = len(segment.view) - segment.used
            # Nearly always everything fits.
            fits = len(source) - copied <= room
            stop = len(lengths) if fits else int(ends.searchsorted(copied + room, side="right"))
            if stop == done:
                self._replace_current(lengths.item(done), starts[:done])
                continue
            end = ends.item(stop - 1)
            starts[done:stop] += (number << _SHIFT) + segment.used - copied
            segment.view[segment.used : segment.used + end - copied] = source[copied:end]
            segment.used += end - copied
            segment.cells += stop - done
            self._limits[number] = segment.used
            self._used += end - copied
            done, copied = stop, end
        return starts

    def _replace_current(self, at_least: int, placed: Indices) -> None:
        """Go on in another segment, or at the beginning of this one if nothing in it is alive."""
        number, segment = self._current, self._segment(self._current)
        if not segment.cells and len(segment.view) >= at_least:
            self._used -= segment.used
            segment.used = 0
            return
        try:
            self._current = self._open(at_least)
        except HeapFullError:
            self._release(placed.tolist())  # the row is refused as a whole
            raise
        if not segment.cells:
            self._drop(number)

    def _segment(self, number: int) -> _Segment:
        segment = self._segments[number]
        assert segment is not None
        return segment

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
        if None in self._segments:
            number = self._segments.index(None)
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
            segment = self._segment(number)
            segment.cells -= 1
            if not segment.cells and number != self._current:
                self._drop(number)

    def _drop(self, number: int) -> None:
        segment = self._segment(number)
        self._segments[number] = None
        self._used -= segment.used
        self._note_extents()
        # One spare turns the steady state of a replay buffer into plain reuse; more would be hoarding.
        if not self._spare:
            self._spare.append(segment)

    def _close_holes(self) -> None:
        """Move the payloads of the emptiest segment behind the others, which frees it."""
        closed = [n for n, segment in enumerate(self._segments) if segment is not None and n != self._current]
        if not closed:
            return
        emptiest = min(closed, key=lambda number: self._segment(number).cells / self._segment(number).used)
        cells = np.flatnonzero((self._starts >> _SHIFT) == emptiest)
        old, lengths = self.locate(cells)
        moved = b"".join(self.view(*place) for place in zip(old.tolist(), lengths.tolist()))
        starts = self._place(np.frombuffer(moved, np.uint8), lengths)
        self._release(self._forget(cells))
        self._record(cells, starts, lengths)


@hookimpl
def sb3_extra_buffers_heap() -> HeapPlugin:
    return HeapPlugin(protocol=1, factory=MemoryHeap, summary="Memory that grows in segments with what is stored")
