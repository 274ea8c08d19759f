"""``UndecidedFrames``: becomes a :class:`FrameStore` when it has seen how frames are stacked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import HeapFullError
from sb3_extra_buffers.frames import FrameGeometry, FrameKernels, whole
from sb3_extra_buffers.frames.packing import patch
from sb3_extra_buffers.heaps.state import State, StateError, within
from sb3_extra_buffers.memory import Bytes, Indices
from sb3_extra_buffers.stores.cell_planes import CellPlanes
from sb3_extra_buffers.stores.frame_store import FrameStore
from sb3_extra_buffers.stores.judging import ROWS_TO_JUDGE
from sb3_extra_buffers.stores.waiting import copy_matching

#: After so many steps to observations that differ from those before, and are not these shifted, there is no stack.
_ENOUGH = 16
#: More than this is not held back uncompressed.
_MAX_NBYTES, _MAX_WRITES = 1 << 23, 256


class Construction(Protocol):
    """Makes the real store; an object rather than a closure, so that a buffer pickles before it was written to."""

    @property
    def kernels(self) -> FrameKernels:
        """What the store will use."""

    def __call__(self, geometry: FrameGeometry, /) -> FrameStore: ...


class CellsInstead(Protocol):
    """Makes cells of what turns out to be no stack; an object, as above."""

    def choose(self, rows: Bytes, patches: Bytes, /) -> CellPlanes | None:
        """Make a store of cells, unless frames are smaller.

        :param rows: observations that differ
        :param patches: what they are as frames
        """

    def choice(self) -> dict[str, Any]:
        """What was chosen, as JSON can say it."""

    def repeat(self, choice: State, /) -> CellPlanes:
        """Make the store that was chosen before."""


class UndecidedFrames:
    """Holds the first observations back until one of them is its predecessor with one frame more.

    Whether four planes are four gray frames or one image of four channels, no space says. The data do, usually with
    the first step. What is no stack may be stored as cells instead, each by itself: where much changes from one image
    to the next, as in a first-person view, that is smaller, and faster to read.

    :param stacks: how frames may be stacked, the deepest first
    :param construct: makes the store
    :param cells: observations per plane
    :param row_nbytes: bytes of one observation
    :param streams: how many environments there are
    :param label: what is known of how they will be stored
    :param instead: makes cells of what is no stack; ``None`` makes frames of everything
    :param planes: how many there are
    """

    def __init__(
        self,
        stacks: Sequence[FrameGeometry],
        construct: Construction,
        cells: int,
        row_nbytes: int,
        streams: int,
        label: str,
        instead: CellsInstead | None = None,
        planes: int = 2,
    ) -> None:
        self.cells = cells
        self.row_nbytes = row_nbytes
        self._stacks = tuple(stacks)
        self._construct = construct
        self._streams = streams
        self._label = label
        self._instead = instead
        self._planes = planes
        self._store: FrameStore | CellPlanes | None = None
        self._writes: list[tuple[int, Indices, Bytes]] = []
        self._last: dict[int, Bytes] = {}
        self._held_nbytes = 0
        self._misfits = 0
        self._refuted: set[FrameGeometry] = set()

    @property
    def decided(self) -> FrameStore | CellPlanes | None:
        """The real store, once there is one. It stays the same."""
        return self._store

    @property
    def kernels(self) -> FrameKernels:
        return self._construct.kernels

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
        # What was learnt about stacks stays: rollouts can be too short to learn it from one of them.
        self._writes.clear()
        self._last.clear()
        self._held_nbytes = 0
        if self._store is not None:
            self._store.clear()

    def state(self) -> State:
        """What another one needs in order to become this one."""
        if isinstance(self._store, CellPlanes):
            assert self._instead is not None
            return State({"geometry": None, "cells": self._instead.choice()}).put("store", self._store.state())
        if self._store is not None:
            geometry = self._store.streams.geometry
            return State({"geometry": _numbers(geometry)}).put("store", self._store.state())
        writes, last = self._writes, list(self._last.values())
        facts: dict[str, Any] = {"geometry": None, "planes": [plane for plane, _, _ in writes]}
        facts |= {"sizes": [len(cells) for _, cells, _ in writes], "streams": list(self._last)}
        facts |= {"misfits": self._misfits, "refuted": [_numbers(geometry) for geometry in self._refuted]}
        no_cells, no_rows = np.empty(0, np.int64), np.empty((0, self.row_nbytes), np.uint8)
        arrays = {
            "cells": np.concatenate([no_cells, *(cells for _, cells, _ in writes)]),
            "rows": np.concatenate([no_rows, *(rows for _, _, rows in writes)]),
            "last": np.concatenate([no_rows, *(row[np.newaxis] for row in last)]),
        }
        return State(facts, arrays)

    def restore(self, state: State) -> None:
        """Become what another one was. Its heap has been restored."""
        if state.facts.get("cells") is not None:
            if self._instead is None:
                raise StateError("observations were stored as cells, which this buffer does not do")
            self._store = self._instead.repeat(state.part("cells"))
            self._store.restore(state.part("store"))
            return
        if state.facts.get("geometry") is not None:
            self._store = self._construct(self._geometry(state.numbers("geometry", 3)))
            self._store.restore(state.part("store"))
            return
        sizes = state.numbers("sizes")
        planes, streams = state.numbers("planes", len(sizes)), state.numbers("streams")
        if min(sizes, default=0) < 0 or not {*planes} <= {*range(self._planes)}:
            raise StateError("observations are held back that nobody wrote")
        cells = state.array("cells", np.int64, sum(sizes))
        within("cells", cells, 0, self.cells - 1)
        rows = state.array("rows", np.uint8, len(cells), self.row_nbytes)
        edges = np.cumsum(sizes)[:-1].tolist() if sizes else []
        pairs = zip(np.split(cells, edges), np.split(rows, edges)) if sizes else ()
        self._writes = [(plane, some.copy(), part.copy()) for plane, (some, part) in zip(planes, pairs)]
        last = state.array("last", np.uint8, len(streams), self.row_nbytes)
        self._last = {stream: row.copy() for stream, row in zip(streams, last)}
        self._held_nbytes, self._misfits = rows.nbytes, state.number("misfits", 0, 1 << 62)
        self._refuted = {self._geometry(numbers) for numbers in state.fact("refuted", list)}

    def _geometry(self, numbers: Any) -> FrameGeometry:
        for geometry in (*self._stacks, whole(self.row_nbytes)):
            if numbers == _numbers(geometry):
                return geometry
        raise StateError(f"observations cannot be stacked as {numbers!r}")

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
        self._store, held = self._chosen(geometry), self._writes
        self._writes, self._last, self._held_nbytes = [], {}, 0
        problems = [problem for write in held if (problem := self._problem_of(*write)) is not None]
        if problems:
            raise problems[0]

    def _chosen(self, geometry: FrameGeometry) -> FrameStore | CellPlanes:
        if self._instead is not None and geometry.depth == 1:
            pairs = self._steps()
            if pairs:
                patches = np.concatenate([part for before, after in pairs for part in patch(before, after)])
                cells = self._instead.choose(np.stack([after for _, after in pairs]), patches)
                if cells is not None:
                    return cells
        return self._construct(geometry)

    def _steps(self) -> list[tuple[Bytes, Bytes]]:
        """Observations that differ, each with the one before it."""
        last: dict[int, Bytes] = {}
        found = []
        for plane, cells, rows in self._writes:
            if plane:
                continue
            for stream, row in zip((cells % self._streams).tolist(), rows):
                if stream in last and not np.array_equal(last[stream], row):
                    found.append((last[stream], row))
                last[stream] = row
        return found[:: -(-len(found) // ROWS_TO_JUDGE)] if found else []

    def _problem_of(self, plane: int, cells: Indices, rows: Bytes) -> HeapFullError | None:
        """Write what was held back. What does not fit is lost; what follows may fit."""
        assert self._store is not None
        try:
            self._store.write(plane, cells, rows)
        except HeapFullError as error:
            return replace(error, never_fits=False)  # said of what was held back, not of what is being written
        return None


def _numbers(geometry: FrameGeometry) -> list[int]:
    return [geometry.depth, geometry.pixels, geometry.group]
