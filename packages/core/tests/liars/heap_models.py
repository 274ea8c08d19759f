"""Models that heaps are compared with: a dictionary with a queue of rows, and a restored twin."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sb3_extra_buffers import heaps
from sb3_extra_buffers.errors import HeapFullError, HeapStateError, ParameterError
from sb3_extra_buffers.heaps import Piece, State
from sb3_extra_buffers.testing.heap_subject import held, payload, put

CELLS = 12
CAPACITIES = [64, 1000, 4099]
#: Of one payload: small ones, some that fill a small ring alone, and some that take a segment of their own.
LENGTHS = st.integers(1, 40) | st.sampled_from([63, 64, 65, 500, 1000, 4000, 70_000])
ROWS = st.dictionaries(st.integers(0, CELLS - 1), LENGTHS, min_size=1, max_size=5)
COPIES = [copy.deepcopy, lambda heap: pickle.loads(pickle.dumps(heap))]


class HeapMachine(RuleBasedStateMachine):
    """What a heap with a limit drops is not computed but judged: whole rows, the oldest, and not without need."""

    #: Which heap is compared, and whether it has a capacity.
    name, evicts = "memory", False

    @initialize(capacity=st.sampled_from(CAPACITIES))
    def make(self, capacity):
        self.capacity = capacity if self.evicts else None
        self.heap = heaps.create(self.name, CELLS, **({"capacity": capacity} if self.evicts else {}))
        self.forget()
        self.version = 0

    def forget(self):
        self.model, self.row_of, self.nbytes_of_rows = {}, {}, []
        self.dropped_rows = self.dropped_cells = self.dropped_nbytes = 0

    def written(self, lengths):
        self.version += 1
        return {cell: payload(cell, self.version, length) for cell, length in lengths.items()}

    @rule(lengths=ROWS, slack=st.sampled_from([0, 1, 5000]))
    def write(self, lengths, slack):
        row = self.written(lengths)
        nbytes = sum(lengths.values())
        if self.capacity is not None and nbytes > self.capacity:
            with pytest.raises(HeapFullError):
                put(self.heap, list(row), list(row.values()), slack)
            return
        put(self.heap, list(row), list(row.values()), slack)
        self.nbytes_of_rows.append(nbytes)
        number = len(self.nbytes_of_rows) - 1
        self.model.update(row)
        self.row_of.update(dict.fromkeys(row, number))
        self.judge_evictions(number)

    def judge_evictions(self, newest):
        found = held(self.heap)
        gone = self.model.keys() - found.keys()
        rows = {self.row_of[cell] for cell in gone}
        if not rows:
            return
        assert self.capacity is not None, "a heap without a limit has dropped something"
        assert newest not in rows
        assert rows == {row for row in self.row_of.values() if row <= max(rows)}, "an older row is still there"
        # A payload is contiguous, so up to one of them, or a row, may have been moved to the beginning.
        since = self.nbytes_of_rows[max(rows) :]
        assert sum(since) + max(since) > self.capacity, "there was room for it"
        self.dropped_rows += len(rows)
        self.dropped_cells += len(gone)
        self.dropped_nbytes += sum(len(self.model[cell]) for cell in gone)
        for cell in gone:
            del self.model[cell], self.row_of[cell]

    @rule(lengths=ROWS)
    def write_cell_by_cell_where_the_heap_has_a_way(self, lengths):
        if not hasattr(self.heap, "put"):
            return
        for cell, content in self.written(lengths).items():
            middle = len(content) // 2
            parts = [np.frombuffer(part, np.uint8) for part in (content[:middle], content[middle:])]
            self.heap.put(cell, parts, len(content))
            self.model[cell] = content

    @rule(lengths=ROWS)
    def reserve_and_leave_it(self, lengths):
        room = self.heap.reserve(np.array(list(lengths)), sum(lengths.values()))
        room[:] = 0xEE

    @rule(lengths=ROWS, wrong=st.sampled_from(["more", "fewer", "zero", "negative", "beyond", "float"]))
    def commit_what_does_not_fit(self, lengths, wrong):
        sizes = list(lengths.values())
        self.heap.reserve(np.array(list(lengths)), sum(sizes))
        lies = {
            "more": [*sizes, 1],
            "fewer": sizes[:-1],
            "zero": [*sizes[:-1], 0],
            "negative": [*sizes[:-1], -1],
            "beyond": [*sizes[:-1], sizes[-1] + 1],
            "float": np.array(sizes, np.float64),
        }
        with pytest.raises(HeapStateError):
            self.heap.commit(np.asarray(lies[wrong]))

    @rule(cells=st.lists(st.integers(-3, CELLS + 2), min_size=1, max_size=4))
    def locate(self, cells):
        if not all(0 <= cell < CELLS for cell in cells):
            with pytest.raises(ParameterError):
                self.heap.locate(np.array(cells))
            return
        starts, lengths = self.heap.locate(np.array(cells))
        assert lengths.tolist() == [len(self.model.get(cell, b"")) for cell in cells]
        assert ((starts >= 0) == (lengths > 0)).all()

    @rule(start=st.integers(-(2**40), 2**40), length=st.integers(-(2**62), 2**62))
    def read_anywhere(self, start, length):
        for read in (self.heap.view, lambda *place: self.heap.addresses(*(np.array([part]) for part in place))):
            try:
                found = read(start, length)
            except HeapStateError:
                continue
            assert len(found) == (length if read == self.heap.view else 1)

    @rule(duplicate=st.sampled_from(COPIES))
    def go_on_with_a_copy(self, duplicate):
        left, self.heap = self.heap, duplicate(self.heap)
        assert left.evicted == self.heap.evicted
        left.clear()

    @rule()
    def clear(self):
        self.heap.clear()
        self.forget()

    @invariant()
    def holds_the_model(self):
        if not hasattr(self, "heap"):
            return
        assert held(self.heap) == self.model
        assert self.heap.live == sum(map(len, self.model.values())) <= self.heap.capacity
        evicted = self.heap.evicted
        assert evicted == heaps.Evictions(self.dropped_rows, self.dropped_cells, self.dropped_nbytes)


def fill(heap, cells, nbytes, seed):
    sizes = np.maximum(1, np.arange(len(cells)) * 7 + nbytes - 3 * len(cells))
    room = heap.reserve(np.array(cells), int(sizes.sum()))
    room[:] = np.random.default_rng(seed).integers(0, 256, len(room), np.uint8)
    heap.commit(sizes)


def content(heap):
    starts, lengths = heap.locate(np.arange(heap.cells))
    held = starts >= 0
    addresses = heap.addresses(starts[held], lengths[held])
    assert len(addresses) == held.sum()
    return [bytes(heap.view(*place)) if place[0] >= 0 else None for place in zip(starts.tolist(), lengths.tolist())]


def moved(heap, twin, known):
    """Restore a heap into a new one. Pieces of logs that were saved before are kept, as in a checkpoint."""
    state = heap.state()
    pieces = {}
    for log in state.logs:
        parts = [part for part in known.get(log.key, []) if part.begin + len(part.content) > log.begin]
        end = parts[-1].begin + len(parts[-1].content) if parts else log.begin
        if end < log.end:
            parts.append(Piece(end, np.concatenate(log.read(end, log.end))))
        pieces.setdefault(log.key, [])
        pieces[log.key] += [part for part in parts if all(part is not other for other in pieces[log.key])]
    twin.restore(State(state.facts, {key: array.copy() for key, array in state.arrays.items()}, [], pieces))
    return twin, pieces
