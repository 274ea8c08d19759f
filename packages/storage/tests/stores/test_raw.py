"""``RawStore``: cells as they are, claimed when written, returned when cleared."""

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


def test_what_was_written_may_change_afterwards():
    store, given = RawStore(6, 5), rows(7)
    store.write(np.array([2]), given)
    given[:] = 1
    assert (read(store, 2) == 7).all()


def test_its_size_is_that_of_the_cells_that_were_written():
    store = RawStore(6, 5)
    assert store.stored_nbytes() == 0
    store.write(np.array([4, 1]), rows(7, 8))
    store.write(np.array([1]), rows(9))
    assert store.stored_nbytes() == 10
    assert store.overhead == 6


def test_the_reason_stands_beside_the_name():
    assert RawStore(6, 5).codec == "none"
    assert RawStore(6, 5, reason="too small").codec == "none (too small)"


def test_nothing_is_ever_dropped():
    assert RawStore(6, 5).holds(np.array([0, 5])).all()


def test_memory_is_claimed_at_the_first_write_and_returned_when_cleared():
    store = RawStore(6, 5)
    assert store._rows is None
    store.write(np.array([4]), rows(7))
    store.clear()
    assert store._rows is None
    assert store.stored_nbytes() == 0
    assert not read(store, 4).any()
    store.write(np.array([3]), rows(2))
    assert read(store, 4, 3)[:, 0].tolist() == [0, 2]


def test_memory_that_cannot_be_had_is_an_error_and_the_store_is_as_before():
    store = RawStore(1 << 16, 1 << 44)
    with pytest.raises(HeapFullError, match="could not allocate"):
        store.write(np.array([0]), np.empty((1, 0), np.uint8))
    assert store.stored_nbytes() == 0


def test_the_pickle_holds_only_what_was_written():
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


def test_a_store_without_content_pickles():
    twin = pickle.loads(pickle.dumps(RawStore(6, 5, reason="x")))
    assert not read(twin, 3).any()
    assert twin.codec == "none (x)"
