"""``memory``: grows segment by segment without copying, and returns empty segments to the system."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import setitem
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import FileDamagedError, HeapFullError
from sb3_extra_buffers.heaps.block import Block, adopt, log_parts
from sb3_extra_buffers.heaps.plugin import HeapPlugin
from sb3_extra_buffers.heaps.state import Log, State, Unread
from sb3_extra_buffers.heaps.table import TableHeap
from sb3_extra_buffers.memory import NOTHING, Attribute, Bytes, Columns, Indices, publish
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
    #: The log that the segment is saved in, and the position of its first byte there.
    log: int = 0
    log_begin: int = 0

    def saved(self, used: int) -> Log:
        return Log(str(self.log), self.log_begin, self.log_begin + used, self._read)

    def _read(self, low: int, high: int) -> list[Bytes]:
        return [np.frombuffer(self.block.view(low - self.log_begin, high - low), np.uint8)]


#: By number of a segment: the end of its used part, and how many payloads were copied to it.
_Filled = dict[int, tuple[int, int]]
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
    # By number of the segment: its address, the end of its used part, and its number of payloads.
    _bases: NDArray[np.uint64]
    _limits: Indices
    _counts: Indices
    # The same memory, for one segment at a time.
    _limit_of: memoryview[int]
    _count_of: memoryview[int]
    #: Set as long as loaded bytes were not compared with their checksums.
    _unread: Unread | None = None

    def __init__(self, cells: int) -> None:
        super().__init__(cells)
        #: By number. A segment without payloads is used again, unless it is the current one.
        self._segments: list[_Segment] = []
        self._logs = 0  # how many segments were ever begun
        publish((), (), (), self._arrays(8))
        self._begin(*self._open(_MIN_SEGMENT))

    def _arrays(self, size: int, *begin: Any) -> list[Attribute]:
        """New arrays with room for so many segments, which begin with this content; the rest is 0."""
        bases, limits, counts = np.zeros(size, np.uint64), np.zeros(size, np.int64), np.zeros(size, np.int64)
        for array, content in zip((bases, limits, counts), begin):
            array[: len(content)] = content
        arrays = {"_bases": bases, "_limits": limits, "_counts": counts}
        views = {"_limit_of": memoryview(limits), "_count_of": memoryview(counts)}
        return [(self, name, value) for name, value in {**arrays, **views}.items()]

    def _begin(self, number: int, segment: _Segment, used: int = 0, count: int = 0) -> None:
        """Make a segment part of the heap, and the current one."""
        self._segments[number : number + 1] = [segment]  # appends, too
        self._bases[number], self._limits[number], self._counts[number] = segment.block.address, used, count
        self._current = number

    @property
    def moves(self) -> int | None:
        # None as long as reading may find damage in a file: stores then ask for what they read, and not for all.
        return self._moves if self._unread is None else None

    @property
    def capacity(self) -> int:
        return sum(segment.block.nbytes for segment in self._segments)

    def view(self, start: int, length: int, /) -> memoryview:
        number, offset = place_of(start)
        segment = self._segments[number] if 0 <= number < len(self._segments) else _GONE
        if length < 1 or segment is _GONE or offset + length > self._limit_of[number]:
            raise self._outside(start, length)
        if self._unread is not None:
            self.addresses(np.array([start]), np.array([length]))
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
        unread = self._unread  # another thread may find that nothing is left
        if unread is not None and unread.check(found, lengths):
            self._unread = None
        return found

    def _clearing(self) -> list[Attribute]:
        # Kept for reuse: a rollout buffer is cleared after each rollout and filled again at once.
        blocks = [segment.block for segment in self._segments if segment.block.reusable and segment is not _GONE]
        first, *rest = blocks or [self._allocate(_MIN_SEGMENT)]
        segments = [self._segment(first), *map(_Segment, rest)]
        arrays = self._arrays(len(self._limits), [segment.block.address for segment in segments])
        return [(self, "_segments", segments), (self, "_current", 0), *arrays]

    def _allocate(self, nbytes: int) -> Block:
        return Block.anonymous(self.label, nbytes)

    def _parameters(self) -> dict[str, Scalar]:
        return {}

    def put(self, cell: int, parts: Sequence[Bytes], nbytes: int, /) -> None:
        """Write a row of one cell, in a third of the time of :meth:`reserve` and :meth:`commit`."""
        number, start_of, length_of, limit_of = self._current, self._start_of, self._length_of, self._limit_of
        block, used = self._segments[number].block, limit_of[number]
        end = used + nbytes
        if not 0 <= cell < len(start_of) or end > block.nbytes or nbytes < 1:
            np.concatenate(parts, out=self.reserve(np.array([cell]), nbytes))
            self.commit(np.array([nbytes]))
            return
        np.concatenate(parts, out=block.data[used:end])
        start, old_nbytes, count_of, totals = (number << _SHIFT) + used, length_of[cell], self._count_of, self._totals
        other = start_of[cell] >> _SHIFT if old_nbytes else -1
        left = count_of[other] - 1
        if old_nbytes and (not left or other == number):
            self._settle([cell], [start], [nbytes], {number: (end, 1)}, {})
            return
        targets: tuple[Any, ...] = (start_of, length_of, limit_of, count_of, totals, count_of)
        values = start, nbytes, end, count_of[number] + 1, totals[0] + nbytes - old_nbytes, left
        keys = (cell, cell, number, number, 0, other) if old_nbytes else (cell, cell, number, number, 0)
        any(map(setitem, targets, keys, values))  # what publish() does, faster

    def _store(self, cells: list[int], payloads: memoryview, lengths: list[int], also: Columns = NOTHING) -> None:
        number, limit_of, count_of = self._current, self._limit_of, self._count_of
        block, used, count = self._segments[number].block, limit_of[number], len(cells)
        end = used + len(payloads)
        if end > block.nbytes:
            self._settle(cells, *self._place(payloads, lengths), also)
            # The row is stored; holes stay until there is memory, or if their segment is in a damaged file.
            with suppress(HeapFullError, FileDamagedError):
                self._close_holes()
            return
        block.write(used, payloads)
        start_of, length_of, live = self._start_of, self._length_of, self._totals[0] + len(payloads)
        position, starts, olds = (number << _SHIFT) + used, [], []
        for cell, length in zip(cells, lengths):
            starts.append(position)
            position += length
            old = length_of[cell]
            if old:
                live -= old
                olds.append(start_of[cell] >> _SHIFT)
        # In the order of a replay buffer, the payloads that are replaced lie together, in another segment.
        other = olds[0] if olds else number
        left = count_of[other] - len(olds)
        if left <= 0 or other == number or olds.count(other) != len(olds):
            self._settle(cells, starts, lengths, {number: (end, count)}, {}, also)
            return
        publish(
            [start_of] * count + [length_of] * count + [limit_of, count_of, count_of, self._totals, *also[0]],
            cells + cells + [number, number, other, 0, *also[1]],
            starts + lengths + [end, count_of[number] + count, left, live, *also[2]],
        )

    def _place(
        self, payloads: memoryview, lengths: list[int]
    ) -> tuple[list[int], list[int], _Filled, dict[int, _Segment]]:
        """Copy payloads to where nothing is read: after the used part of the current segment, then to empty ones.

        :return: what :meth:`_settle` needs: positions, sizes, the segments that they were copied to, and new segments
        """
        starts: list[int] = []
        filled: _Filled = {}
        opened: dict[int, _Segment] = {}
        done, count, copied = 0, len(lengths), 0
        number, used, block = self._current, self._limit_of[self._current], self._segments[self._current].block
        while True:
            base, end, room, first = number << _SHIFT, used, block.nbytes, done
            while done < count and (after := end + lengths[done]) <= room:
                starts.append(base + end)
                end = after
                done += 1
            if end > used:
                block.write(used, payloads[copied : copied + end - used])
                copied += end - used
                filled[number] = end, done - first
            if done == count:
                return starts, lengths, filled, opened
            number, segment = self._open(lengths[done], filled)
            opened[number], used, block = segment, 0, segment.block

    def _settle(
        self,
        cells: list[int],
        starts: list[int],
        lengths: list[int],
        filled: _Filled,
        opened: dict[int, _Segment],
        also: Columns = NOTHING,
        attributes: Sequence[Attribute] = (),
    ) -> None:
        """Publish payloads that were copied, and release those that they replace.

        :param filled: the segments that they were copied to
        :param opened: those of the segments that were empty; the last of them becomes the current one
        """
        start_of, length_of, count_of = self._start_of, self._length_of, self._count_of
        counts = {self._current: count_of[self._current]}
        for number, (_, placed) in filled.items():
            counts[number] = count_of[number] + placed
        for cell in cells:
            if length_of[cell]:
                number = start_of[cell] >> _SHIFT
                counts[number] = (counts[number] if number in counts else count_of[number]) - 1
        targets = [*also[0], *[self._limit_of] * len(filled), *[count_of] * len(counts)]
        keys, values = [*also[1], *filled, *counts], [*also[2], *[end for end, _ in filled.values()], *counts.values()]
        for number, segment in opened.items():
            # Assigning to a slice also appends.
            targets += self._segments, self._bases
            keys += slice(number, number + 1), number
            values += [segment], segment.block.address
            attributes = [*attributes, (self, "_current", number)]
        if 0 in counts.values():
            gone = self._emptied(counts)
            targets += [self._segments] * len(gone) + [self._limits]
            keys += [*gone, np.array([number for number, count in counts.items() if not count])]
            values += [_GONE] * len(gone) + [0]
        self._record(cells, starts, lengths, (targets, keys, values), attributes)

    def _emptied(self, counts: dict[int, int]) -> list[int]:
        """Those of the segments that lose their last payload that are returned; one is kept for reuse."""
        # One spare segment is enough for the steady state of a replay buffer.
        is_spare, gone = any(number not in counts for number in self._empty()), []
        for number in (number for number, count in counts.items() if not count):
            is_reusable = self._segments[number].block.reusable
            if is_spare or not is_reusable:
                gone.append(number)
            is_spare |= is_reusable
        return gone

    def _empty(self) -> list[int]:
        """The numbers of segments without payloads."""
        empty = np.flatnonzero(self._counts[: len(self._segments)] == 0).tolist()
        return [number for number in empty if self._segments[number] is not _GONE]

    def _open(self, at_least: int, filled: Collection[int] = ()) -> tuple[int, _Segment]:
        """A number, and a segment with room for ``at_least`` bytes that is not yet part of the heap."""
        for number in self._empty():
            block = self._segments[number].block
            if number not in filled and block.reusable and block.nbytes >= at_least:
                return number, self._segment(block)
        share = max(self._live // _SEGMENTS_PER_LIVE, _MIN_SEGMENT)
        # Up to one payload of room is lost at the end of a segment, so it should hold several.
        several = min(_PAYLOADS_PER_SEGMENT * at_least, self._live // 8)
        wanted = max(at_least, min(max(share, several), _MAX_SEGMENT))
        segment = self._segment(self._allocate(-(-wanted // 4096) * 4096))
        unused = (number for number, old in enumerate(self._segments) if old is _GONE and number not in filled)
        number = next(unused, max([len(self._segments), *(taken + 1 for taken in filled)]))
        if number >= len(self._limits):
            publish((), (), (), self._arrays(2 * number, self._bases, self._limits, self._counts))
        return number, segment

    def _segment(self, block: Block) -> _Segment:
        """A block as an empty segment, which is saved in a log of its own."""
        self._logs += 1
        return _Segment(block, log=self._logs - 1)

    def _close_holes(self) -> None:
        """While most of the used bytes are dead, append the payloads of the emptiest segment to the current one."""
        used, before = int(self._limits.sum()), 0
        while used - self._live > self._live + 2 * _MIN_SEGMENT and used != before:
            # Of segments with payloads, the current one aside, that with the fewest for its size.
            held = np.flatnonzero(self._counts)
            closed = held[held != self._current]
            if not len(closed):
                return
            emptiest = closed[(self._counts[closed] / self._limits[closed]).argmin()]
            cells = np.flatnonzero((self._lengths > 0) & ((self._starts >> _SHIFT) == emptiest)).tolist()
            lengths = [self._length_of[cell] for cell in cells]
            moved = b"".join(self.view(self._start_of[cell], length) for cell, length in zip(cells, lengths))
            counted = [(self, "_moves", self._moves + 1)]
            self._settle(cells, *self._place(memoryview(moved), lengths), attributes=counted)
            before, used = used, int(self._limits.sum())

    def state(self) -> State:
        found = self._table_state()
        kept = [(number, self._segments[number], self._limit_of[number]) for number in np.flatnonzero(self._counts)]
        found.facts["segments"] = [[int(number), part.log, part.log_begin, used] for number, part, used in kept]
        found.facts["logs"] = self._logs
        found.logs += [segment.saved(used) for _, segment, used in kept]
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
        publish((), (), (), self._arrays(count + 8))
        for number, part, payloads in adopted:
            piece, block = part.piece, self._saved(part.piece.raw)
            if not block.reusable:
                self._unread = piece.unread
            nbytes = len(piece.content if block.reusable else piece.raw)  # a copy is compared now
            self._begin(number, _Segment(block, part.log, piece.begin), nbytes, payloads)
        self._logs = state.number("logs", 0, 1 << 62)
        self._begin(*self._open(_MIN_SEGMENT))

    def _saved(self, content: Bytes) -> Block:
        """A block for saved bytes, which stay in their file."""
        return Block(content, reusable=False)


@hookimpl
def sb3_extra_buffers_heap() -> HeapPlugin:
    summary = "Memory that grows in segments with what is stored"
    return HeapPlugin(protocol=1, factory=MemoryHeap, summary=summary, grows=True, in_memory=True)
