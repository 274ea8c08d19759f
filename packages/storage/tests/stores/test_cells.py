"""``CellStore``: one payload per cell, in a section of a heap that several stores may share."""

import pickle

import numpy as np
import pytest

from sb3_extra_buffers.codecs import CellSpec, bind
from sb3_extra_buffers.errors import HeapFullError, HeapStateError
from sb3_extra_buffers.heaps import create
from sb3_extra_buffers.stores import CellStore
from sb3_extra_buffers.stores import cells as cells_module

NBYTES = 64


def store_on(heap, first=0, cells=10, codec="rle", **options):
    return CellStore(bind(codec, CellSpec(np.uint8, NBYTES)), heap, first, cells, **options)


def flat(*values):
    return np.array(values, np.uint8).reshape(-1, 1).repeat(NBYTES, axis=1)


def read(store, *cells):
    out = np.full((len(cells), store.row_nbytes), 99, np.uint8)
    store.read(np.array(cells, np.int64), out)
    return out


@pytest.mark.parametrize("codec", ["none", "rle", "gzip"])
@pytest.mark.parametrize(
    ("heap", "parameters"), [("memory", {}), ("ring", {"capacity": 9999}), ("mmap", {"capacity": 9999})]
)
def test_cells_are_zero_until_written_then_what_was_written(codec, heap, parameters):
    store = store_on(create(heap, 10, **parameters), codec=codec)
    assert not read(store, 0, 9).any()
    noise = np.random.default_rng(0).integers(0, 256, (2, NBYTES), np.uint8)
    store.write(np.array([7, 2]), noise)
    assert (read(store, 2, 7, 0, 2) == np.stack([noise[1], noise[0], 0 * noise[0], noise[1]])).all()
    store.write(np.array([2]), flat(5))
    assert (read(store, 2, 7) == np.stack([flat(5)[0], noise[0]])).all()


def test_stores_on_one_heap_do_not_see_each_other():
    heap = create("memory", 30)
    stores = [store_on(heap, first, codec=codec) for first, codec in ((0, "rle"), (10, "gzip"), (20, "none"))]
    for number, store in enumerate(stores):
        store.write(np.array([0, 9]), flat(number + 1, number + 1))
    for number, store in enumerate(stores):
        assert read(store, 0, 5, 9)[:, 0].tolist() == [number + 1, 0, number + 1]
    assert sum(store.stored_nbytes() for store in stores) == heap.live
    assert stores[2].stored_nbytes() == 2 * NBYTES


def test_only_written_cells_are_held():
    store = store_on(create("memory", 10))
    store.write(np.array([3, 4]), flat(1, 2))
    assert store.holds(np.array([2, 3, 4])).tolist() == [False, True, True]


def test_the_description_names_the_codec_and_the_reason():
    heap = create("memory", 10)
    assert store_on(heap, codec="gzip3").describe() == "gzip/3"
    assert store_on(heap, codec="rle", reason="chosen: it is small").describe() == "rle (chosen: it is small)"
    assert store_on(heap).overhead == 0


def test_reading_an_evicted_cell_is_an_error_and_the_others_can_be_read():
    store = store_on(create("ring", 10, capacity=3 * NBYTES), codec="none")
    for cell in range(10):
        store.write(np.array([cell]), flat(cell))
    assert store.holds(np.arange(10)).tolist() == [False] * 7 + [True] * 3
    assert read(store, 9, 7)[:, 0].tolist() == [9, 7]
    with pytest.raises(HeapStateError, match=r"RingHeap: cannot read cell 6: it was evicted .*larger capacity"):
        read(store, 9, 6, 5)


def test_unwritten_cells_of_a_ring_are_zero_before_the_first_eviction():
    store = store_on(create("ring", 10, capacity=3 * NBYTES), codec="none")
    store.write(np.array([3]), flat(7))
    assert read(store, 3, 4)[:, 0].tolist() == [7, 0]


def test_a_write_that_does_not_fit_changes_nothing():
    store = store_on(create("ring", 10, capacity=3 * NBYTES), codec="none")
    store.write(np.array([0, 1]), flat(5, 6))
    with pytest.raises(HeapFullError, match="256 bytes were needed at once, the capacity is 192 bytes"):
        store.write(np.array([0, 1, 2, 3]), flat(1, 2, 3, 4))
    assert read(store, 0, 1)[:, 0].tolist() == [5, 6]
    store.write(np.array([2]), flat(7))
    assert read(store, 0, 1, 2)[:, 0].tolist() == [5, 6, 7]


@pytest.fixture
def encoded(monkeypatch):
    """Number of rows of each call of ``encode_batch``."""
    counts, encode_batch = [], cells_module.encode_batch
    monkeypatch.setattr(
        cells_module,
        "encode_batch",
        lambda codec, rows, out: counts.append(len(rows)) or encode_batch(codec, rows, out),
    )
    return counts


def refusal(attempt):
    """The error message if there is no room."""
    try:
        attempt()
    except HeapFullError as error:
        return str(error)
    return None


@pytest.mark.parametrize("noisy", range(17))
@pytest.mark.parametrize("rows_at_once", [16, 5])
def test_rows_are_refused_before_a_write_exactly_if_the_write_would_fail(noisy, rows_at_once, monkeypatch):
    monkeypatch.setattr(cells_module, "_MAX_STEP_NBYTES", rows_at_once * NBYTES)
    rows = np.random.default_rng(0).permutation(np.arange(16 * NBYTES)).astype(np.uint8).reshape(16, NBYTES)
    rows[noisy:] = 7
    widest = bind("gzip", CellSpec(np.uint8, NBYTES)).max_encoded_nbytes
    for capacity in range(11, 16 * (widest + 64), 7):
        store = store_on(create("ring", 16, capacity=capacity), cells=16, codec="gzip")
        said = refusal(lambda store=store: store.refuse_too_large(rows))
        assert said == refusal(lambda store=store: store.write(np.arange(16), rows))


def test_the_check_for_room_encodes_rows_only_until_the_others_surely_fit(encoded):
    widest = bind("gzip", CellSpec(np.uint8, NBYTES)).max_encoded_nbytes + 64
    noise = np.random.default_rng(0).integers(0, 256, (16, NBYTES), np.uint8)
    for rows, capacity, counts in (
        (noise, 16 * widest, []),
        (flat(*range(16)), 16 * widest - 1, [1]),
        (noise, 1600, [1, 2, 4, 8, 1]),
    ):
        encoded.clear()
        ring = store_on(create("ring", 16, capacity=capacity), cells=16, codec="gzip")
        assert ring.refuse_too_large(rows) == bool(counts)
        assert encoded == counts
    encoded.clear()
    assert not store_on(create("memory", 16), cells=16, codec="gzip").refuse_too_large(noise)
    assert not encoded


def test_a_long_write_reserves_room_in_steps_of_limited_size(monkeypatch):
    monkeypatch.setattr(cells_module, "_MAX_STEP_NBYTES", 4 * NBYTES)
    heap = create("memory", 10)
    store, reserved = store_on(heap), []
    reserve = heap.reserve
    monkeypatch.setattr(heap, "reserve", lambda cells, worst: reserved.append(len(cells)) or reserve(cells, worst))
    store.write(np.arange(10)[::-1], flat(*range(10)))
    assert reserved == [4, 4, 2]
    assert read(store, *range(10))[:, 0].tolist() == list(range(9, -1, -1))


def test_a_long_write_that_fails_leaves_each_cell_old_or_new(monkeypatch):
    monkeypatch.setattr(cells_module, "_MAX_STEP_NBYTES", 4 * NBYTES)
    heap = create("memory", 10)
    store, commit, count = store_on(heap), heap.commit, []
    store.write(np.arange(10), flat(*[50] * 10))

    def fail_the_second_time(lengths):
        count.append(1)
        if len(count) == 2:
            raise HeapFullError("memory", 1, 0)
        commit(lengths)

    with monkeypatch.context() as patch:
        patch.setattr(heap, "commit", fail_the_second_time)
        with pytest.raises(HeapFullError):
            store.write(np.arange(10), flat(*range(10)))
    found = read(store, *range(10))
    assert all((row == 50).all() or (row == cell).all() for cell, row in enumerate(found))
    store.write(np.arange(10), flat(*range(10)))
    assert (read(store, *range(10)) == flat(*range(10))).all()


@pytest.mark.parametrize("threads", [None, 1, 4])
def test_the_number_of_threads_does_not_change_the_content(threads):
    store = store_on(create("memory", 10), codec="gzip", threads=threads)
    store.write(np.arange(10), flat(*range(10)))
    assert read(store, 3, 3, 9, 0)[:, 0].tolist() == [3, 3, 9, 0]


def test_clearing_makes_every_cell_zero():
    store = store_on(create("memory", 10))
    store.write(np.arange(10), flat(*range(10)))
    store.clear()
    assert store.stored_nbytes() == 0
    assert not read(store, *range(10)).any()


def test_stores_share_their_heap_after_pickling():
    heap = create("memory", 20)
    stores = [store_on(heap, 0), store_on(heap, 10, codec="gzip")]
    stores[0].write(np.array([3]), flat(7))
    first, second = pickle.loads(pickle.dumps(stores))
    second.write(np.array([3]), flat(8))
    assert (read(first, 3) == 7).all()
    assert (read(second, 3) == 8).all()
    assert first._heap is second._heap
    assert not read(stores[1], 3).any()
