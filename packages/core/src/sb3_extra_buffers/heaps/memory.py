"""``memory``: grows segment by segment without copying, and returns empty segments to the system."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import HeapFullError
from sb3_extra_buffers.heaps.block import Block, SavedBlock
from sb3_extra_buffers.heaps.plugin import HeapPlugin
from sb3_extra_buffers.heaps.restore import LogPart, adopt, log_parts
from sb3_extra_buffers.heaps.state import Log, State
from sb3_extra_buffers.heaps.table import TableHeap
from sb3_extra_buffers.memory import Bytes, Indices
from sb3_extra_buffers.registry import Scalar, hookimpl

# A position is the number of a segment and an offset into it.
_SHIFT = 32
_OFFSET = (1 << _SHIFT) - 1
_MIN_SEGMENT = 1 << 16
_MAX_SEGMENT = 1 << 26
#: New segments are this fraction of the live bytes, so that unused and dead bytes stay a few per cent.
_SEGMENTS_PER_LIVE = 64
_PAYLOADS_PER_SEGMENT = 16


def place_of(start: int) -> tuple[int, int]:
    """The number of a segment and an offset in it."""
    return start >> _SHIFT, start & _OFFSET


@dataclass(eq=False)  # a segment equals itself; comparing arrays would fail
class _Segment:
    block: Block
    used: int = 0
    cells: int = 0
    #: The log that the segment is saved in, and the position of its first byte there.
    log: int = 0
    log_begin: int = 0


#: Stands for a segment that was returned. It has no bytes, so that every read from it is refused.
_GONE = _Segment(Block(np.empty(0, np.uint8)))


class MemoryHeap(TableHeap):
    """Payloads in anonymous memory that grows with them.

    Cells that are overwritten in the order of writing, as in a replay buffer, empty whole segments, which are reused:
    nothing moves. Other orders leave holes; once more than half of the used bytes are holes, the payloads of the
    emptiest segment are moved.

    :param cells: number of cells
    """

    label = "memory"
    _moves = 0

    def __init__(self, cells: int) -> None:
        super().__init__(cells)
        self._segments: list[_Segment] = []
        self._spare: list[_Segment] = []
        self._used = 0  # bytes written into segments, alive or dead
        self._logs = 0  # how many segments were ever begun
        # Addresses and used sizes of segments as arrays for addresses(), which is called for each batch.
        self._bases, self._limits = np.zeros(8, np.uint64), np.zeros(8, np.int64)
        self._current = self._open(_MIN_SEGMENT)

    @property
    def moves(self) -> int | None:
        return self._moves

    @property
    def capacity(self) -> int:
        return sum(segment.block.nbytes for segment in (*self._segments, *self._spare))

    def view(self, start: int, length: int, /) -> memoryview:
        number, offset = place_of(start)
        segment = self._segments[number] if 0 <= number < len(self._segments) else _GONE
        if length < 1 or offset + length > segment.used:
            raise self._outside(start, length)
        return segment.block.view(offset, length)

    def addresses(self, starts: Indices, lengths: Indices, /) -> NDArray[np.uint64]:
        numbers, offsets = starts >> _SHIFT, starts & _OFFSET
        known = (starts >= 0) & (numbers < len(self._limits)) & (lengths > 0)
        # Not offset + length > limit: a huge length would overflow and look small.
        outside = ~known | (lengths > self._limits[np.where(known, numbers, 0)] - offsets)
        if outside.any():
            bad = int(np.argmax(outside))
            raise self._outside(int(starts[bad]), int(lengths[bad]))
        found: NDArray[np.uint64] = self._bases[numbers] + offsets.astype(np.uint64)
        return found

    def clear(self) -> None:
        super().clear()
        # Kept for reuse: a rollout buffer is cleared after each rollout and filled again at once.
        self._spare += [segment for segment in self._segments if segment.block.reusable and segment is not _GONE]
        self._segments.clear()
        self._limits.fill(0)
        self._used = 0
        self._current = self._open(_MIN_SEGMENT)

    def _allocate(self, nbytes: int) -> Block:
        return Block.anonymous(self.label, nbytes)

    def _parameters(self) -> dict[str, Scalar]:
        return {}

    def put(self, cell: int, parts: Sequence[Bytes], nbytes: int, /) -> None:
        """Write a row of one cell, in a third of the time of :meth:`reserve` and :meth:`commit`.

        :param cell: the cell to be written
        :param parts: its payload, in pieces
        :param nbytes: their size, together
        """
        number, segment = self._current, self._segments[self._current]
        used, end = segment.used, segment.used + nbytes
        if not 0 <= cell < len(self._starts) or end > segment.block.nbytes or not nbytes:
            np.concatenate(parts, out=self.reserve(np.array([cell]), nbytes))
            self.commit(np.array([nbytes]))
            return
        np.concatenate(parts, out=segment.block.data[used:end])
        old_start, old_nbytes = self._start_of[cell], self._length_of[cell]
        self._start_of[cell], self._length_of[cell] = (number << _SHIFT) + used, nbytes
        segment.used = self._limits[number] = end
        segment.cells += 1
        self._used += nbytes
        self._live += nbytes - old_nbytes
        if old_nbytes:
            self._release([old_start])
        self._close_holes_if_many()

    def _store(self, cells: list[int], payloads: memoryview, lengths: list[int]) -> None:
        starts = self._place(payloads, lengths)
        self._release(self._forget(cells))
        self._record(cells, starts, lengths)
        self._close_holes_if_many()

    def _place(self, payloads: memoryview, lengths: list[int]) -> list[int]:
        """Append payloads, in as many segments as necessary, and return their positions."""
        starts: list[int] = []
        done, count, copied = 0, len(lengths), 0
        while True:
            number, segment = self._current, self._segments[self._current]
            base, used, room = number << _SHIFT, segment.used, segment.block.nbytes
            end, first = used, done
            while done < count and (after := end + lengths[done]) <= room:
                starts.append(base + end)
                end = after
                done += 1
            size = end - used
            if size:
                segment.block.write(used, payloads[copied : copied + size])
            segment.cells += done - first
            self._extend(number, segment, end)
            if done == count:
                return starts
            copied += size
            self._replace_current(lengths[done], starts)

    def _extend(self, number: int, segment: _Segment, end: int) -> None:
        """Note that a segment is used up to here."""
        self._used += end - segment.used
        segment.used = self._limits[number] = end

    def _replace_current(self, at_least: int, placed: list[int]) -> None:
        """Continue in another segment, or at the beginning of this one if it holds no live payload."""
        number, segment = self._current, self._segments[self._current]
        if not segment.cells and segment.block.nbytes >= at_least:
            self._extend(number, segment, 0)
            self._begin_log(segment)
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
        share = max(self._live // _SEGMENTS_PER_LIVE, _MIN_SEGMENT)
        # Up to one payload of room is lost at the end of a segment, so it should hold several.
        several = min(_PAYLOADS_PER_SEGMENT * at_least, self._live // 8)
        wanted = max(at_least, min(max(share, several), _MAX_SEGMENT))
        segment = next((spare for spare in self._spare if spare.block.nbytes >= at_least), None)
        if segment is None:
            segment = _Segment(self._allocate(-(-wanted // 4096) * 4096))
        else:
            self._spare.remove(segment)
            segment.used = segment.cells = 0
        self._begin_log(segment)
        return self._append(segment)

    def _append(self, segment: _Segment) -> int:
        """Give a segment a number."""
        if _GONE in self._segments:
            number = self._segments.index(_GONE)
        else:
            number = len(self._segments)
            self._segments.append(segment)
            if number == len(self._limits):
                self._bases, self._limits = (np.concatenate([part, 0 * part]) for part in (self._bases, self._limits))
        self._set(number, segment)
        return number

    def _set(self, number: int, segment: _Segment) -> None:
        self._segments[number] = segment
        self._bases[number], self._limits[number] = segment.block.address, segment.used

    def _release(self, starts: list[int]) -> None:
        """Mark the payloads at these positions as dead; reuse or return segments that become empty."""
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
        self._limits[number] = 0
        # One spare segment is enough for the steady state of a replay buffer.
        if not self._spare and segment.block.reusable:
            self._spare.append(segment)

    def _close_holes_if_many(self) -> None:
        if self._used - self._live > self._live + 2 * _MIN_SEGMENT:
            with suppress(HeapFullError):  # the row is stored; holes stay until there is memory
                self._close_holes()

    def _close_holes(self) -> None:
        """Append the payloads of the emptiest segment to the current one, which frees it."""
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
        self._moves += 1

    def _begin_log(self, segment: _Segment) -> None:
        segment.log, segment.log_begin = self._logs, 0
        self._logs += 1

    def state(self) -> State:
        found = self._table_state()
        kept = [(number, segment) for number, segment in enumerate(self._segments) if segment.cells]
        found.facts["segments"] = [[number, part.log, part.log_begin, part.used] for number, part in kept]
        found.facts["logs"] = self._logs
        found.logs += [_log_of(segment) for _, segment in kept]
        return found

    def _resume(self, snapshot: dict[str, Any]) -> None:
        if len(snapshot["order"]):
            payloads = memoryview(snapshot["payloads"])
            self._store(snapshot["order"].tolist(), payloads, snapshot["lengths"].tolist())

    def restore(self, state: State) -> None:
        starts, lengths = self._restore_table(state)
        adopted = adopt(log_parts(state), starts, lengths)
        count = max((number for number, _, _ in adopted), default=-1) + 1
        self._segments = [_GONE] * count
        self._bases, self._limits = np.zeros(count + 8, np.uint64), np.zeros(count + 8, np.int64)
        for number, part, cells in adopted:
            self._set(number, self._segment_of(part, cells))
        self._used = sum(segment.used for segment in self._segments)
        self._logs = state.number("logs", 0, 1 << 62)
        self._current = self._open(_MIN_SEGMENT)

    def _segment_of(self, part: LogPart, cells: int) -> _Segment:
        return _Segment(self._saved(part.content), len(part.content), cells, part.log, part.begin)

    def _saved(self, content: Bytes) -> Block:
        """A block for saved bytes, which stay in their file."""
        return SavedBlock(content)


def _log_of(segment: _Segment) -> Log:
    begin, end, block = segment.log_begin, segment.log_begin + segment.used, segment.block
    return Log(
        str(segment.log), begin, end, lambda low, high: [np.frombuffer(block.view(low - begin, high - low), np.uint8)]
    )


@hookimpl
def sb3_extra_buffers_heap() -> HeapPlugin:
    return HeapPlugin(
        protocol=1,
        factory=MemoryHeap,
        summary="Memory that grows in segments with what is stored",
        grows=True,
        in_memory=True,
    )
