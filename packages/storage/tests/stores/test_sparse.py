"""``SparseStore``: rows for the cells that need one; slots are reused."""

import pickle

import numpy as np
import pytest

from sb3_extra_buffers.errors import HeapFullError
from sb3_extra_buffers.stores import RawStore
from sb3_extra_buffers.stores.sparse import SparseStore

NBYTES = 6


def flat(*values):
    return np.array(values, np.uint8).reshape(-1, 1).repeat(NBYTES, axis=1)


def read(store, *cells):
    out = np.full((len(cells), NBYTES), 99, np.uint8)
    store.read(np.array(cells, np.int64), out)
    return out[:, 0].tolist()


def test_reading_leaves_rows_of_cells_without_a_slot_alone():
    store = SparseStore(RawStore(10, NBYTES))
    assert read(store, 0, 1) == [99, 99]
    store.write(np.array([7, 2]), flat(70, 20))
    assert read(store, 2, 3, 7, 2) == [20, 99, 70, 20]


def test_a_cell_keeps_its_slot_when_written_again():
    store = SparseStore(RawStore(10, NBYTES))
    store.write(np.array([7, 2]), flat(70, 20))
    store.write(np.array([2, 5]), flat(21, 50))
    assert read(store, 7, 2, 5) == [70, 21, 50]
    assert store.stored_nbytes() == 3 * NBYTES


def test_free_slots_are_reused_before_new_ones_are_opened():
    store = SparseStore(RawStore(10, NBYTES))
    store.write(np.arange(4), flat(0, 1, 2, 3))
    store.free(np.array([1, 3, 8]))
    assert read(store, 0, 1, 2, 3) == [0, 99, 2, 99]
    store.write(np.array([9]), flat(90))
    assert store.stored_nbytes() == 4 * NBYTES
    store.write(np.array([8, 7]), flat(80, 70))
    assert store.stored_nbytes() == 5 * NBYTES
    assert read(store, 0, 2, 7, 8, 9) == [0, 2, 70, 80, 90]


def test_freeing_a_cell_twice_frees_its_slot_once():
    store = SparseStore(RawStore(10, NBYTES))
    store.write(np.array([4, 5]), flat(40, 50))
    store.free(np.array([4]))
    store.free(np.array([4]))
    store.write(np.array([6, 7]), flat(60, 70))
    assert read(store, 5, 6, 7) == [50, 60, 70]


def test_every_cell_may_have_a_slot():
    store = SparseStore(RawStore(10, NBYTES))
    for lap in range(3):
        store.write(np.arange(10), flat(*range(lap, 10 + lap)))
        assert read(store, *range(10)) == list(range(lap, 10 + lap))
        store.free(np.arange(10))
    assert store.stored_nbytes() == 10 * NBYTES


def test_cells_that_need_a_row_at_different_times_share_slots():
    store = SparseStore(RawStore(1000, NBYTES))
    for cell in range(1000):
        store.write(np.array([cell]), flat(cell % 256))
        if cell >= 3:
            store.free(np.array([cell - 3]))
    assert store.stored_nbytes() <= 4 * NBYTES
    assert read(store, 999, 998, 997, 996) == [231, 230, 229, 99]


def test_a_failed_write_takes_no_slot():
    raw = RawStore(10, NBYTES)
    store, write = SparseStore(raw), raw.write
    store.write(np.array([1, 2, 3]), flat(10, 20, 30))
    store.free(np.array([2]))

    def refuse(cells, rows):
        raise HeapFullError("memory", 1, 0)

    raw.write = refuse
    for _ in range(5):
        with pytest.raises(HeapFullError):
            store.write(np.array([1, 5, 6]), flat(11, 50, 60))
    raw.write = write
    assert read(store, 1, 2, 3, 5, 6) == [10, 99, 30, 99, 99]
    store.write(np.array([1, 5, 6]), flat(11, 50, 60))
    assert read(store, 1, 2, 3, 5, 6) == [11, 99, 30, 50, 60]
    assert store.stored_nbytes() == 4 * NBYTES


def test_clearing_frees_all_slots():
    store = SparseStore(RawStore(10, NBYTES))
    store.write(np.arange(10), flat(*range(10)))
    store.clear()
    assert store.stored_nbytes() == 0
    assert read(store, 4) == [99]
    store.write(np.array([4]), flat(40))
    assert store.stored_nbytes() == NBYTES


def test_slots_are_pickled():
    store = SparseStore(RawStore(10, NBYTES))
    store.write(np.array([4, 5]), flat(40, 50))
    store.free(np.array([4]))
    twin = pickle.loads(pickle.dumps(store))
    twin.write(np.array([6]), flat(60))
    assert read(twin, 4, 5, 6) == [99, 50, 60]
    assert twin.stored_nbytes() == 2 * NBYTES
    assert twin.overhead == store.overhead >= 10 * 4
