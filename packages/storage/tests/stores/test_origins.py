"""``origins``: a reader that follows them finds the same bytes as ``read``."""

import numpy as np
import pytest

from sb3_extra_buffers import heaps
from sb3_extra_buffers.codecs import CellSpec, bind
from sb3_extra_buffers.errors import HeapStateError
from sb3_extra_buffers.stores import (
    CellStore,
    DeferredStore,
    LocatedStore,
    PairStore,
    RawStore,
    RewrittenStore,
    SharedStore,
    join_origins,
)

NBYTES, ENVS, STEPS = 40, 2, 10
CODEC = bind("rle", CellSpec(np.uint8, NBYTES))


def rows(seed, count=ENVS):
    return np.random.default_rng(seed).integers(0, 3, (count, NBYTES), np.uint8)


def by_origins(heap, origins):
    """What a reader finds that knows only the heap and the codec."""
    found = np.zeros((len(origins.cells), NBYTES), np.uint8)
    for row, cell in enumerate(origins.cells.tolist()):
        starts, lengths = heap.locate(np.array([cell])) if cell >= 0 else ([-1], [0])
        if starts[0] >= 0:
            origins.codec.decode_into(heap.view(int(starts[0]), int(lengths[0])), found[row])
    for places, content in origins.in_memory:
        found[places] = content
    return found


def read(store, cells, is_next=False):
    out = np.full((len(cells), NBYTES), 99, np.uint8)
    store.read(cells, *((None, out) if is_next else (out, None)))
    return out


class Choose:
    """Chooses a store at the first write."""

    def __init__(self, store):
        self.store = store

    def choose(self, held, write):
        return self.store


@pytest.mark.parametrize("shares", [True, False])
@pytest.mark.parametrize("batch", [0, 6])
def test_origins_of_observations_and_next_observations_in_every_state(batch, shares):
    heap = heaps.create("memory", 2 * STEPS * ENVS)
    own = CellStore(CODEC, heap, 0, STEPS * ENVS, batch=batch)
    others = CellStore(CODEC, heap, STEPS * ENVS, STEPS * ENVS)
    store = SharedStore(own, others, ENVS) if shares else PairStore(own, others)
    assert isinstance(store, LocatedStore)
    random, last = np.random.default_rng(0), rows(0)
    everything = np.arange(STEPS * ENVS)
    for step in range(27):  # some episodes end, and some next observations are pending
        cells = np.arange(ENVS) + step % STEPS * ENVS
        following = rows(step + 1)
        store.write(cells, last, following)
        last = rows(1000 + step) if random.random() < 0.3 else following
        order = random.permutation(everything)
        parts = [store.origins(order, is_next) for is_next in (False, True)]
        for is_next, part in enumerate(parts):
            assert (by_origins(heap, part) == read(store, order, is_next)).all()
        both = np.concatenate([read(store, order, is_next) for is_next in (False, True)])
        assert (by_origins(heap, join_origins(parts)) == both).all()


def test_a_deferred_store_has_no_origins_before_the_first_write():
    heap = heaps.create("memory", 6)
    store = DeferredStore(6, NBYTES, Choose(CellStore(CODEC, heap, 0, 6)))
    found = store.origins(np.arange(4))
    assert (found.codec, found.cells.tolist(), found.in_memory) == (None, [-1] * 4, [])
    store.write(np.array([1, 3]), rows(5))
    assert (by_origins(heap, store.origins(np.arange(4))) == read(store, np.arange(4))).all()


def test_origins_of_rows_that_are_written_twice():
    heap = heaps.create("memory", 6)
    store = RewrittenStore(CellStore(CODEC, heap, 0, 6))
    for _ in range(2):
        store.write(np.array([4, 2]), rows(7))
    assert (by_origins(heap, store.origins(np.arange(6))) == read(store, np.arange(6))).all()


def test_origins_of_an_evicted_cell_are_an_error():
    heap = heaps.create("ring", 6, capacity=60)
    store = CellStore(bind("none", CellSpec(np.uint8, NBYTES)), heap, 0, 6)
    for cell in range(3):
        store.write(np.array([cell]), rows(cell, 1))
    assert (by_origins(heap, store.origins(np.array([2]))) == rows(2, 1)).all()
    with pytest.raises(HeapStateError, match="evicted"):
        store.origins(np.array([2, 0]))


def test_a_raw_store_has_no_origins():
    assert not isinstance(RawStore(4, NBYTES), LocatedStore)
