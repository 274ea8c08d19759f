"""``CellStore`` with batches: the newest cells are compressed later, and read as if they were compressed at once."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sb3_extra_buffers.codecs import CellSpec, CodecSpec, bind
from sb3_extra_buffers.errors import HeapFullError
from sb3_extra_buffers.heaps import create
from sb3_extra_buffers.stores import CellStore, Place, StoreRequest, build_stores

NBYTES = 8


def flat(*values, nbytes=NBYTES):
    return np.array(values, np.uint8).reshape(-1, 1).repeat(nbytes, axis=1)


def read(store, *cells):
    out = np.full((len(cells), store.row_nbytes), 99, np.uint8)
    store.read(np.array(cells, np.int64), out)
    assert (out == out[:, :1]).all()
    return out[:, 0].tolist()


def batched(cells=10, batch=4):
    heap = create("memory", cells)
    return heap, CellStore(bind("none", CellSpec(np.uint8, NBYTES)), heap, 0, cells, batch=batch)


def request(label="x", nbytes=5000, cells=100, codec="gzip", streams=1):
    spec = None if codec is None else CodecSpec(codec)
    return StoreRequest(label, (nbytes,), np.dtype(np.uint8), cells, streams, spec)


class BatchMachine(RuleBasedStateMachine):
    """A plain array beside two stores that share a heap."""

    @initialize(batch=st.integers(1, 5))
    def make(self, batch):
        heap, codec = create("memory", 12), bind("rle", CellSpec(np.uint8, NBYTES))
        self.stores = [CellStore(codec, heap, first, 6, batch=batch) for first in (0, 6)]
        self.heap, self.plain = heap, np.zeros((2, 6), np.uint8)

    @rule(
        side=st.integers(0, 1),
        cells=st.lists(st.integers(0, 5), min_size=1, max_size=6, unique=True),
        value=st.integers(1, 50),
        fails=st.integers(0, 3),
    )
    def write(self, side, cells, value, fails):
        rows = flat(*range(value, value + len(cells)))
        commit = self.heap.commit
        if not fails:
            self.heap.commit = refuse
        try:
            self.stores[side].write(np.array(cells), rows)
            self.plain[side][cells] = rows[:, 0]
        except HeapFullError:
            assert not fails
        finally:
            self.heap.commit = commit
        rows[:] = 77

    @rule(side=st.integers(0, 1), cells=st.lists(st.integers(0, 5), max_size=8))
    def read(self, side, cells):
        assert read(self.stores[side], *cells) == self.plain[side][cells].tolist()

    @rule(route=st.sampled_from([copy.deepcopy, lambda stores: pickle.loads(pickle.dumps(stores))]))
    def duplicate(self, route):
        self.heap, self.stores = route((self.heap, self.stores))

    @rule()
    def clear(self):
        for store in self.stores:
            store.clear()
        self.plain[:] = 0

    @invariant()
    def nothing_is_lost(self):
        if hasattr(self, "stores"):
            assert [read(store, *range(6)) for store in self.stores] == self.plain.tolist()


def refuse(lengths):
    raise HeapFullError("memory", 1, 0)


TestBatches = BatchMachine.TestCase
TestBatches.settings = settings(max_examples=100, stateful_step_count=30, deadline=None, derandomize=True)


def test_a_batch_is_stored_when_the_next_cell_has_no_room():
    heap, store = batched()
    for cell in range(4):
        store.write(np.array([cell]), flat(cell + 1))
        assert heap.live == 0
    store.write(np.array([4]), flat(5))
    assert heap.live == 4 * NBYTES
    assert read(store, 4, 0, 9, 3, 4) == [5, 1, 0, 4, 5]


def test_a_pending_cell_is_held_and_can_be_written_again():
    _, store = batched()
    store.write(np.array([3]), flat(30))
    assert store.holds(np.array([3, 4])).tolist() == [True, False]
    store.write(np.array([4, 3]), flat(40, 31))
    assert read(store, 3, 4) == [31, 40]


def test_a_write_longer_than_a_batch_is_stored_at_once():
    heap, store = batched()
    store.write(np.array([9]), flat(90))
    store.write(np.arange(6), flat(*range(6)))
    assert heap.live == 7 * NBYTES
    assert read(store, *range(6), 9) == [*range(6), 90]


def test_a_batch_that_cannot_be_stored_stays_pending_and_the_write_can_be_repeated(monkeypatch):
    heap, store = batched()
    store.write(np.arange(4), flat(1, 2, 3, 4))
    with monkeypatch.context() as patch:
        patch.setattr(heap, "commit", refuse)
        for cells, rows in ((np.array([5]), flat(50)), (np.array([0]), flat(10)), (np.arange(9), flat(*range(9)))):
            with pytest.raises(HeapFullError):
                store.write(cells, rows)
            assert read(store, *range(6)) == [1, 2, 3, 4, 0, 0]
    store.write(np.array([5]), flat(50))
    assert read(store, *range(6)) == [1, 2, 3, 4, 0, 50]


def test_pending_cells_count_as_stored_and_the_free_room_as_overhead():
    _, store = batched(cells=10, batch=4)
    empty = store.overhead
    assert empty >= 4 * NBYTES
    for cell in range(6):
        store.write(np.array([cell]), flat(cell))
        assert store.stored_nbytes() == (cell + 1) * NBYTES
        assert store.overhead == empty - (cell % 4 + 1) * NBYTES


@pytest.mark.parametrize("order", [("heap", "store"), ("store", "heap"), ("other", "store", "heap")])
def test_pending_cells_are_pickled_in_whatever_order_heap_and_stores_are(order):
    heap, codec = create("memory", 20), bind("rle", CellSpec(np.uint8, NBYTES))
    parts = {"heap": heap}
    for first, name in ((0, "store"), (10, "other")):
        parts[name] = CellStore(codec, heap, first, 10, batch=4)
        parts[name].write(np.array([1, 2]), flat(10 + first, 20 + first))
    twins = pickle.loads(pickle.dumps({name: parts[name] for name in order}))
    assert read(twins["store"], 0, 1, 2) == [0, 10, 20]
    if "other" in twins:
        assert read(twins["other"], 0, 1, 2) == [0, 20, 30]
    twins["store"].write(np.array([3, 4, 5]), flat(30, 40, 50))
    assert read(twins["store"], 1, 3, 5) == [10, 30, 50]
    assert read(parts["store"], 1, 3, 5) == [10, 0, 0]


@pytest.mark.parametrize("codec", ["gzip", None])
def test_large_cells_in_memory_are_batched_and_pickled_while_pending(codec):
    stores, heap = build_stores([request(label, codec=codec, streams=2) for label in ("first", "second")], Place())
    for number, store in enumerate(stores):
        store.write(np.array([4, 5]), flat(number + 1, number + 2, nbytes=5000))
    assert heap.live == 0
    twins, twin = pickle.loads(pickle.dumps((stores, heap)))
    assert [read(store, 3, 4, 5) for store in twins] == [[0, 1, 2], [0, 2, 3]]
    assert [read(store, 3, 4, 5) for store in stores] == [[0, 1, 2], [0, 2, 3]]
    for store in twins:
        for cell in range(0, 100, 2):
            store.write(np.array([cell, cell + 1]), flat(cell, cell + 1, nbytes=5000))
    assert twin.live > 0
    assert [read(store, *range(100)) for store in twins] == [list(range(100))] * 2


@pytest.mark.parametrize(
    ("nbytes", "place", "count", "streams"),
    [
        (300, Place(), 100, 1),
        (5000, Place("ring", {"capacity": 1 << 20}), 100, 1),
        (5000, Place("mmap"), 100, 1),
        (5000, Place(), 3, 1),
        (5000, Place(), 100, 40),
        (1 << 20, Place(), 100, 1),
    ],
    ids=["small cells", "ring", "mmap", "few cells", "many environments", "huge cells"],
)
def test_cells_are_stored_at_once_where_batches_do_not_pay_or_do_not_fit(nbytes, place, count, streams):
    (store,), heap = build_stores([request(nbytes=nbytes, cells=count, streams=streams)], place)
    store.write(np.array([1]), np.full((1, nbytes), 7, np.uint8))
    assert heap.live > 0
