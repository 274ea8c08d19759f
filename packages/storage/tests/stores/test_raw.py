"""``RawStore``: uncompressed cells; memory is allocated at the first write and freed when cleared."""

import pickle

import numpy as np
import pytest

from sb3_extra_buffers.errors import HeapFullError
from sb3_extra_buffers.stores import RawStore


def read(store, *cells):
    out = np.full((len(cells), store.row_nbytes), 99, np.uint8)
    store.read(np.array(cells, np.int64), out)
    return out


def rows(*values, nbytes=5):
    return np.array(values, np.uint8).reshape(-1, 1).repeat(nbytes, axis=1)


def test_cells_are_zero_until_written_then_what_was_written():
    store = RawStore(6, 5)
    assert not read(store, 0, 5).any()
    store.write(np.array([4, 1]), rows(7, 8))
    assert read(store, 1, 4, 1, 0)[:, 0].tolist() == [8, 7, 8, 0]
    store.write(np.array([1]), rows(9))
    assert read(store, 4, 1)[:, 2].tolist() == [7, 9]


def test_the_rows_given_to_a_write_are_copied():
    store, given = RawStore(6, 5), rows(7)
    store.write(np.array([2]), given)
    given[:] = 1
    assert (read(store, 2) == 7).all()


def test_stored_bytes_count_the_written_cells():
    store = RawStore(6, 5)
    assert store.stored_nbytes() == 0
    store.write(np.array([4, 1]), rows(7, 8))
    store.write(np.array([1]), rows(9))
    assert store.stored_nbytes() == 10
    assert store.overhead == 6


def test_the_description_gives_the_reason():
    assert RawStore(6, 5).describe() == "none"
    assert RawStore(6, 5, reason="too small").describe() == "none (too small)"


def test_every_cell_is_held():
    assert RawStore(6, 5).holds(np.array([0, 5])).all()


def test_memory_is_allocated_at_the_first_write_and_freed_when_cleared():
    store = RawStore(6, 5)
    assert store._rows is None
    store.write(np.array([4]), rows(7))
    store.clear()
    assert store._rows is None
    assert store.stored_nbytes() == 0
    assert not read(store, 4).any()
    store.write(np.array([3]), rows(2))
    assert read(store, 4, 3)[:, 0].tolist() == [0, 2]


def test_a_failed_allocation_is_an_error_and_leaves_the_store_unchanged():
    store = RawStore(1 << 16, 1 << 44)
    with pytest.raises(HeapFullError, match="could not allocate"):
        store.write(np.array([0]), np.empty((1, 0), np.uint8))
    assert store.stored_nbytes() == 0


def test_a_pickle_holds_only_the_written_cells():
    store = RawStore(10_000, 100)
    assert len(pickle.dumps(store)) < 11_000
    store.write(np.array([9999, 17]), rows(7, 8, nbytes=100))
    packed = pickle.dumps(store)
    assert len(packed) < 11_000
    twin = pickle.loads(packed)
    assert (read(twin, 9999, 17, 0) == rows(7, 8, 0, nbytes=100)).all()
    assert twin.stored_nbytes() == 200
    twin.write(np.array([17]), rows(1, nbytes=100))
    assert (read(store, 17) == 8).all()


def test_an_empty_store_pickles():
    twin = pickle.loads(pickle.dumps(RawStore(6, 5, reason="x")))
    assert not read(twin, 3).any()
    assert twin.describe() == "none (x)"
