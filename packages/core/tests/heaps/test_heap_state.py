"""A heap that was saved and restored holds the same payloads, and goes on like the one that was not."""

import numpy as np
import pytest
from heap_models import CELLS, content, fill, moved
from hypothesis import given, settings
from hypothesis import strategies as st

from sb3_extra_buffers import heaps
from sb3_extra_buffers.heaps import Piece, State, StateError

KINDS = {"memory": {}, "ring": {"capacity": 4000}}
ROWS = st.lists(
    st.tuples(st.lists(st.integers(0, CELLS - 1), min_size=1, max_size=4, unique=True), st.integers(1, 900)), max_size=9
)


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=60, deadline=None)
@given(laps=st.lists(ROWS, min_size=1, max_size=5))
def test_restored_heaps_hold_the_same_and_go_on_the_same(name, laps):
    heap = heaps.create(name, CELLS, **KINDS[name])
    twin, known, seed = heaps.create(name, CELLS, **KINDS[name]), {}, 0
    for rows in laps:
        for cells, nbytes in rows:
            seed += 1
            for each in (heap, twin):
                fill(each, cells, nbytes, seed)
        twin, known = moved(twin, heaps.create(name, CELLS, **KINDS[name]), known)
        assert content(twin) == content(heap)
        assert (twin.live, twin.evicted) == (heap.live, heap.evicted)


def test_a_piece_that_holds_nothing_any_more_is_left_out():
    heap = heaps.create("memory", CELLS)
    known = {}
    for seed, cells in enumerate(([0], [1], [2], [1], [3])):
        fill(heap, cells, 100, seed)
        twin, known = moved(heap, heaps.create("memory", CELLS), known)
        assert content(twin) == content(heap)


@pytest.mark.parametrize("name", KINDS)
def test_what_was_loaded_is_never_written_to(name):
    heap = heaps.create(name, CELLS, **KINDS[name])
    for seed in range(30):
        fill(heap, [seed % CELLS], 200, seed)
    twin, pieces = moved(heap, heaps.create(name, CELLS, **KINDS[name]), {})
    before = {key: [part.content.copy() for part in parts] for key, parts in pieces.items()}
    for parts in pieces.values():
        for part in parts:
            part.content.flags.writeable = False
    twin.clear()
    for seed in range(40):
        fill(twin, [seed % CELLS], 300, seed)
    assert all((part.content == old).all() for key, parts in pieces.items() for part, old in zip(parts, before[key]))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("what", ["starts", "lengths"])
def test_payloads_outside_of_what_was_saved_are_refused(name, what):
    heap = heaps.create(name, CELLS, **KINDS[name])
    fill(heap, [1, 2], 100, 0)
    state = heap.state()
    pieces = {log.key: [Piece(log.begin, np.concatenate(log.read(log.begin, log.end)))] for log in state.logs}
    for wrong in (-5, 150, 1 << 30, 1 << 40):
        arrays = {key: array.copy() for key, array in state.arrays.items()}
        if wrong > np.iinfo(arrays[what].dtype).max:
            continue
        arrays[what][1] = wrong if what == "starts" else max(wrong, 500)
        with pytest.raises(StateError):
            heaps.create(name, CELLS, **KINDS[name]).restore(State(state.facts, arrays, [], pieces))
