"""The ring against a model, under every order of writes that a state machine can think of."""

import pickle

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sb3_extra_buffers.errors import HeapFullError
from sb3_extra_buffers.heaps import create
from sb3_extra_buffers.testing.heap_subject import held, payload, put

CELLS = 12


class RingMachine(RuleBasedStateMachine):
    """What was written last for each cell, and in which order: the ring must hold a newest part of it."""

    @initialize(capacity=st.integers(1, 400))
    def make(self, capacity):
        self.heap = create("ring", CELLS, capacity=capacity)
        self.capacity = capacity
        self.written = {}
        self.row_of = {}
        self.step = 0

    @rule(cells=st.lists(st.integers(0, CELLS - 1), min_size=1, max_size=5, unique=True), data=st.data())
    def write(self, cells, data):
        lengths = data.draw(st.lists(st.integers(1, 150), min_size=len(cells), max_size=len(cells)))
        self.step += 1
        row = {cell: payload(cell, self.step, length) for cell, length in zip(cells, lengths)}
        if sum(lengths) > self.capacity:
            before = held(self.heap)
            with pytest.raises(HeapFullError):
                put(self.heap, list(row), list(row.values()))
            assert held(self.heap) == before
            return
        put(self.heap, list(row), list(row.values()))
        self.written.update(row)
        self.row_of.update(dict.fromkeys(row, self.step))
        assert held(self.heap).items() >= row.items()

    @rule()
    def clear(self):
        self.heap.clear()
        self.written.clear()
        self.row_of.clear()

    @rule()
    def travel(self):
        self.heap = pickle.loads(pickle.dumps(self.heap))

    @invariant()
    def holds_a_newest_part(self):
        if not hasattr(self, "heap"):
            return
        found = held(self.heap)
        assert all(found[cell] == self.written[cell] for cell in found)
        assert self.heap.live == sum(map(len, found.values())) <= self.capacity
        gone = [self.row_of[cell] for cell in self.written if cell not in found]
        assert not gone or not found or max(gone) < min(self.row_of[cell] for cell in found)


TestRing = RingMachine.TestCase
TestRing.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


def test_wraps_at_every_offset_without_losing_a_row_that_fits():
    for size in range(1, 40):
        heap = create("ring", 3, capacity=120)
        for step in range(60):
            put(heap, [step % 3], [payload(step % 3, step, size)])
            for back in range(min(3, step + 1)):
                cell = (step - back) % 3
                assert held(heap)[cell] == payload(cell, step - back, size), (size, step, back)


def test_rows_of_hundreds_of_cells_wrap_and_are_evicted_whole():
    heap = create("ring", 900, capacity=40_000)
    for step in range(12):  # rows of 300 cells, 15 kB; two fit, and a row crosses the end at another cell each time
        cells = range(step % 3 * 300, step % 3 * 300 + 300)
        put(heap, cells, [payload(cell, step, 1 + cell % 100) for cell in cells])
        alive = [number for number in (step - 1, step) if number >= 0]
        assert held(heap) == {
            cell: payload(cell, number, 1 + cell % 100)
            for number in alive
            for cell in range(number % 3 * 300, number % 3 * 300 + 300)
        }
    assert (heap.evicted.rows, heap.evicted.cells) == (10, 3000)


def test_the_index_does_not_grow_with_what_is_written():
    heap, sizes = create("ring", 50, capacity=1 << 20), set()
    for step in range(20_000):
        heap.reserve(np.array([step % 50]), 8)
        heap.commit(np.array([8]))
        if step >= 50:
            sizes.add(heap.nbytes)
    assert len(sizes) == 1
    assert heap.live == 50 * 8
