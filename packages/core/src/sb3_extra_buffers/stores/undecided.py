"""``UndecidedFrames``: becomes a :class:`FrameStore` when it has seen how frames are stacked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import HeapFullError
from sb3_extra_buffers.frames import FrameGeometry, whole
from sb3_extra_buffers.stores.frame_store import FrameStore
from sb3_extra_buffers.stores.waiting import copy_matching
from sb3_extra_buffers.views import Bytes, Indices

#: After so many steps to observations that differ from those before, and are not these shifted, there is no stack.
_ENOUGH = 16
#: More than this is not held back uncompressed.
_MAX_NBYTES, _MAX_WRITES = 1 << 23, 256


class Construction(Protocol):
    """Makes the real store; an object rather than a closure, so that a buffer pickles before it was written to."""

    def __call__(self, geometry: FrameGeometry, /) -> FrameStore: ...


class UndecidedFrames:
    """Holds the first observations back until one of them is its predecessor with one frame more.

    Whether four planes are four gray frames or one image of four channels, no space says. The data do, usually with
    the first step.

    :param stacks: how frames may be stacked, the deepest first
    :param construct: makes the store
    :param cells: observations per plane
    :param row_nbytes: bytes of one observation
    :param streams: how many environments there are
    :param label: what is known of how they will be stored
    """

    def __init__(
        self,
        stacks: Sequence[FrameGeometry],
        construct: Construction,
        cells: int,
        row_nbytes: int,
        streams: int,
        label: str,
    ) -> None:
        self.cells = cells
        self.row_nbytes = row_nbytes
        self._stacks = tuple(stacks)
        self._construct = construct
        self._streams = streams
        self._label = label
        self._store: FrameStore | None = None
        self._writes: list[tuple[int, Indices, Bytes]] = []
        self._last: dict[int, Bytes] = {}
        self._held_nbytes = 0
        self._misfits = 0
        self._refuted: set[FrameGeometry] = set()

    @property
    def decided(self) -> FrameStore | None:
        """The real store, once there is one. It stays the same."""
        return self._store

    @property
    def codec(self) -> str:
        return self._label if self._store is None else self._store.codec

    @property
    def overhead(self) -> int:
        return 0 if self._store is None else self._store.overhead

    @property
    def dropped(self) -> int:
        return 0 if self._store is None else self._store.dropped

    def write(self, plane: int, cells: Indices, rows: Bytes) -> None:
        if self._store is None:
            geometry = self._judge(cells, rows)
            if geometry is None:
                self._writes.append((plane, cells.copy(), rows.copy()))
                self._held_nbytes += rows.nbytes
                return
            self._decide(geometry)
        assert self._store is not None
        self._store.write(plane, cells, rows)

    def write_both(self, cells: Indices, rows: Bytes, following: Bytes) -> None:
        if self._store is None:
            self.write(0, cells, rows)
            self.write(1, cells, following)
        else:
            self._store.write_both(cells, rows, following)

    def read(self, plane: int, cells: Indices, out: Bytes) -> None:
        if self._store is not None:
            self._store.read(plane, cells, out)
            return
        out[:] = 0
        for other, written, rows in self._writes:
            if other == plane:
                copy_matching(written, rows, cells, out)

    def read_both(self, cells: Indices, out: Bytes, next_out: Bytes) -> None:
        if self._store is not None:
            self._store.read_both(cells, out, next_out)
            return
        self.read(0, cells, out)
        self.read(1, cells, next_out)

    def stored_nbytes(self) -> int:
        return self._held_nbytes if self._store is None else self._store.stored_nbytes()

    def lost(self) -> NDArray[np.bool_] | None:
        return None if self._store is None else self._store.lost()

    def holds(self, plane: int, cells: Indices) -> NDArray[np.bool_]:
        return np.ones(len(cells), np.bool_) if self._store is None else self._store.holds(plane, cells)

    def clear(self) -> None:
        self._writes.clear()
        self._last.clear()
        self._refuted.clear()
        self._held_nbytes = self._misfits = 0
        if self._store is not None:
            self._store.clear()

    def _judge(self, cells: Indices, rows: Bytes) -> FrameGeometry | None:
        """How frames are stacked, as far as these observations tell."""
        for stream, row in zip((cells % self._streams).tolist(), rows):
            before = self._last.get(stream)
            self._last[stream] = row.copy()
            if before is None or np.array_equal(before, row):
                continue
            verdicts = [(stack, stack.shifts(before, row)) for stack in self._stacks]
            for stack, shifted in verdicts:
                if shifted:
                    return stack
            self._refuted.update(stack for stack, shifted in verdicts if shifted is False)
            self._misfits += all(shifted is False for _, shifted in verdicts)
        room = max(_MAX_NBYTES, 4 * rows.nbytes)  # two steps at least, however many environments there are
        is_full = len(self._writes) >= _MAX_WRITES or self._held_nbytes + rows.nbytes > room
        if not is_full and self._misfits < _ENOUGH * len(rows):
            return None
        possible = [stack for stack in self._stacks if stack not in self._refuted]
        return possible[0] if possible else whole(self.row_nbytes)

    def _decide(self, geometry: FrameGeometry) -> None:
        self._store, held = self._construct(geometry), self._writes
        self._writes, self._last, self._held_nbytes = [], {}, 0
        problems = [problem for write in held if (problem := self._problem_of(*write)) is not None]
        if problems:
            raise problems[0]

    def _problem_of(self, plane: int, cells: Indices, rows: Bytes) -> HeapFullError | None:
        """Write what was held back. What does not fit is lost; what follows may fit."""
        assert self._store is not None
        try:
            self._store.write(plane, cells, rows)
        except HeapFullError as error:
            return error
        return None
