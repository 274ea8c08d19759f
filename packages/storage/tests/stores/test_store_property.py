"""Cells and frames against plain arrays, on heaps with a limit and without, under any sequence of operations.

The machines for batches and for next observations are in ``test_cell_batches.py`` and ``test_pairs.py``.
"""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sb3_extra_buffers import codecs, frames, heaps
from sb3_extra_buffers.codecs import CellSpec, CodecSpec, bind
from sb3_extra_buffers.errors import HeapFullError, HeapStateError
from sb3_extra_buffers.frames import FrameGeometry, Streams
from sb3_extra_buffers.stores import CellStore
from sb3_extra_buffers.stores.chunks import ChunkStore
from sb3_extra_buffers.stores.frames import FrameStore, slots_for

COPIES = [copy.deepcopy, lambda store: pickle.loads(pickle.dumps(store))]
SEEDS = st.integers(0, 2**32 - 1)
#: Heaps that hold everything, and one that must evict most of it.
PLACES = [("memory", {}), ("ring", {"capacity": 1 << 20}), ("mmap", {"capacity": 1 << 20}), ("ring", {"capacity": 900})]


class Machine(RuleBasedStateMachine):
    """A store of one plane or two beside an array; ``known`` says which cells must be readable.

    On a heap with a limit, the store says which cells it still has, and that must be true. Observations are plane 0,
    next observations plane 1.
    """

    def begin(self, store, heap, planes, cells, nbytes, limited):
        self.store, self.heap, self.planes, self.cells = store, heap, planes, cells
        self.plain = np.zeros((planes, cells, nbytes), np.uint8)
        self.was_written = np.zeros((planes, cells), bool)
        self.limited = limited

    def read_plane(self, plane, cells, out):
        self.store.read(cells, *((None, out) if plane else (out, None)))

    def write_plane(self, plane, cells, rows):
        self.store.write(cells, *((None, rows) if plane else (rows, None)))

    def holds(self, plane, cells):
        """Which cells the store holds in this plane, in so far as it says so: both planes, or this one."""
        held = self.store.holds(cells)
        if not isinstance(self.store, FrameStore):
            return held
        references = np.concatenate([cells + part * self.cells for part in range(self.planes)])
        both = ~self.store.streams.reaching(self.store.chunks.gone, references).reshape(self.planes, -1)
        assert (held == both.all(axis=0)).all()
        return both[plane]

    def put(self, plane, cells, rows):
        try:
            self.write_plane(plane, cells, rows)
        except HeapFullError:
            assert self.limited
            # Each cell is as it was, new, or gone.
            for cell, row in zip(cells.tolist(), rows):
                here = np.array([cell])
                if self.holds(plane, here)[0]:
                    out = np.full((1, rows.shape[1]), 99, np.uint8)
                    try:
                        self.read_plane(plane, here, out)
                    except HeapStateError:
                        continue
                    assert any((out == known).all() for known in (row, self.plain[plane, cell]))
                    self.plain[plane, cell] = out[0]
            return
        self.plain[plane, cells] = rows
        self.was_written[plane, cells] = True

    @rule(data=st.data())
    def read(self, data):
        plane = data.draw(st.integers(0, self.planes - 1))
        cells = np.array(data.draw(st.lists(st.integers(0, self.cells - 1), min_size=1, max_size=9)))
        out = np.full((len(cells), self.plain.shape[2]), 99, np.uint8)
        written = self.was_written[plane, cells]
        there = self.holds(plane, cells) | ~written
        try:
            self.read_plane(plane, cells, out)
        except HeapStateError:
            assert self.limited
            assert not (there & written).all()
            return
        assert there.all() or not written.all()
        assert (out == self.plain[plane, cells]).all()

    @rule(duplicate=st.sampled_from(COPIES))
    def go_on_with_a_copy(self, duplicate):
        left = self.store
        self.store, self.heap = duplicate((self.store, self.heap))
        left.clear()

    @rule()
    def clear(self):
        self.store.clear()
        self.plain[...] = 0
        self.was_written[...] = False

    @invariant()
    def everything_that_is_held_is_right(self):
        if not hasattr(self, "store"):
            return
        for plane in range(self.planes):
            cells = np.flatnonzero(self.was_written[plane])
            held = cells[self.holds(plane, cells)]
            assert self.limited or len(held) == len(cells)
            out = np.full((len(held), self.plain.shape[2]), 99, np.uint8)
            if len(held):
                self.read_plane(plane, held, out)
            assert (out == self.plain[plane, held]).all()


class CellMachine(Machine):
    @initialize(
        codec=st.sampled_from(codecs.names()),
        nbytes=st.sampled_from([1, 8, 300]),
        place=st.sampled_from(PLACES),
        first=st.integers(0, 2),
    )
    def make(self, codec, nbytes, place, first):
        name, parameters = place
        heap = heaps.create(name, first + 10, **parameters)
        store = CellStore(bind(codec, CellSpec(np.uint8, nbytes)), heap, first, 10)
        self.begin(store, heap, 1, 10, nbytes, parameters.get("capacity") == 900)

    @rule(cells=st.lists(st.integers(0, 9), unique=True, min_size=1), seed=SEEDS, values=st.sampled_from([1, 2, 256]))
    def write(self, cells, seed, values):
        rng = np.random.default_rng(seed)
        self.put(0, np.array(cells), rng.integers(0, values, (len(cells), self.plain.shape[2]), np.uint8))


class FrameMachine(Machine):
    """Two environments whose stacks shift, jump, stand still and repeat; steps are written in order and in no order."""

    STREAMS, STEPS = 2, 5

    @initialize(
        geometry=st.sampled_from([FrameGeometry(4, 1, 40), FrameGeometry(2, 15, 2), FrameGeometry(1, 1, 30)]),
        place=st.sampled_from(PLACES),
        kernels=st.sampled_from(frames.registry.names()),
        codec=st.sampled_from([None, CodecSpec("rle"), CodecSpec("gzip", {"level": 1})]),
    )
    def make(self, geometry, place, kernels, codec):
        name, parameters = place
        cells = self.STREAMS * self.STEPS
        heap = heaps.create(name, slots_for(geometry, 8, self.STREAMS, 2 * cells), **parameters)
        self.geometry, self.step, self.coding = geometry, 0, (kernels, codec)
        self.begin(self.build(heap), heap, 2, cells, geometry.row_nbytes, parameters.get("capacity") == 900)
        self.stacks = np.zeros((self.STREAMS, geometry.depth, geometry.frame_nbytes), np.uint8)

    def build(self, heap):
        kernels, codec = self.coding
        geometry, slots, made = self.geometry, heap.cells, frames.create(kernels)
        chunks = ChunkStore(made, codec, None, heap, 0, slots, self.STREAMS, geometry.frame_nbytes)
        cells = self.STREAMS * self.STEPS
        return FrameStore(Streams(geometry, 8, self.STREAMS, cells, slots, 2), chunks, made, cells)

    @rule(duplicate=st.sampled_from(COPIES))
    def go_on_with_a_restored_store(self, duplicate):
        left, self.heap = self.store, duplicate(self.heap)
        self.store = self.build(self.heap)
        self.store.restore(left.state())
        left.clear()

    def observe(self):
        rows = np.empty((self.STREAMS, self.geometry.row_nbytes), np.uint8)
        self.geometry.join(self.stacks, rows)
        return rows

    def change(self, events, seed):
        rng = np.random.default_rng(seed)
        for own, event in zip(self.stacks, events):
            frame = own[-1].copy()
            frame[rng.integers(0, len(frame), 3)] = rng.integers(0, 256, 3)
            if event == "shift":
                own[:-1] = own[1:].copy()
                own[-1] = frame
            elif event == "reset":
                own[:-1] = 0
                own[-1] = frame
            elif event == "repeat":
                own[:] = frame
            elif event == "noise":
                own[:] = rng.integers(0, 256, own.shape)
            elif event == "backwards":
                own[:] = own[::-1].copy()

    EVENTS = st.sampled_from(["shift"] * 5 + ["reset", "repeat", "noise", "backwards", "still", "blank"])

    @rule(events=st.lists(st.tuples(EVENTS, EVENTS), min_size=1, max_size=25), seed=SEEDS)
    def go_on(self, events, seed):
        for number, both in enumerate(events):
            cells = np.arange(self.STREAMS) + self.STREAMS * self.step
            before = self.observe()
            self.change(both, seed + number)
            after = self.observe()
            try:
                self.store.write(cells, before, after)
            except HeapFullError:
                assert self.limited
                self.was_written[:, cells] = False
            else:
                self.plain[0, cells], self.plain[1, cells] = before, after
                self.was_written[:, cells] = True
            self.step = (self.step + 1) % self.STEPS

    @rule(data=st.data(), plane=st.integers(0, 1), seed=SEEDS)
    def write_in_no_order(self, data, plane, seed):
        steps = data.draw(st.lists(st.integers(0, self.STEPS - 1), unique=True, min_size=1, max_size=3))
        for step in steps:
            self.change(data.draw(st.tuples(self.EVENTS, self.EVENTS)), seed)
            cells = np.arange(self.STREAMS) + self.STREAMS * step
            self.put(plane, cells, self.observe())

    @rule(cell=st.integers(0, STREAMS * STEPS - 1))
    def the_run_of_held_cells_is_what_counting_finds(self, cell):
        lost = np.flatnonzero(~self.store.holds(np.arange(cell - self.cells, cell) % self.cells))
        assert self.store.held_before(cell) == (self.cells - 1 - lost[-1] if len(lost) else self.cells)

    @rule(seed=SEEDS)
    def read_both(self, seed):
        cells = np.random.default_rng(seed).integers(0, self.cells, 6)
        room = [np.full((6, self.plain.shape[2]), 99, np.uint8) for _ in range(2)]
        try:
            self.store.read(cells, *room)
        except HeapStateError:
            assert self.limited
            return
        for plane in range(2):
            sure = self.was_written[plane, cells] | (not self.limited)
            assert (room[plane][sure] == self.plain[plane, cells[sure]]).all()


TestCells = CellMachine.TestCase
TestCells.settings = settings(max_examples=40, stateful_step_count=20, deadline=None, derandomize=True)
TestFrames = FrameMachine.TestCase
TestFrames.settings = settings(max_examples=30, stateful_step_count=15, deadline=None, derandomize=True)


def test_the_machine_notices_a_store_that_changes_a_byte():
    class Careless(CellStore):
        def read(self, cells, out, next_out=None, /):
            super().read(cells, out, next_out)
            out[out == 255] = 254

    heap, machine = heaps.create("memory", 10), CellMachine()
    machine.begin(Careless(bind("none", CellSpec(np.uint8, 300)), heap, 0, 10), heap, 1, 10, 300, False)
    machine.write([1], 0, 256)
    with pytest.raises(AssertionError):
        machine.everything_that_is_held_is_right()
