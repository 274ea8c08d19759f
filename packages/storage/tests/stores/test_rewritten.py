"""``RewrittenStore``: rows that the last write has stored are not stored again; all others are."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sb3_extra_buffers.errors import HeapFullError
from sb3_extra_buffers.stores import RawStore, RewrittenStore


class Watched(RawStore):
    """Records the cells that are written, and fails on request."""

    def __init__(self, cells, row_nbytes):
        super().__init__(cells, row_nbytes)
        self.written, self.fails = [], False

    def write(self, cells, obs, next_obs=None, /):
        if self.fails:
            raise HeapFullError("memory", 1, 0)
        self.written += cells.tolist()
        super().write(cells, obs, next_obs)


def flat(*values, nbytes=8):
    return np.array(values, np.uint8).reshape(-1, 1).repeat(nbytes, axis=1)


def read(store, *cells):
    out = np.full((len(cells), store.row_nbytes), 99, np.uint8)
    store.read(np.array(cells, np.int64), out)
    return out[:, 0].tolist()


def test_the_same_rows_for_the_same_cells_are_written_once():
    inner = Watched(10, 8)
    store = RewrittenStore(inner)
    for _ in range(3):
        store.write(np.array([2, 3]), flat(20, 30))
    assert inner.written == [2, 3]
    assert read(store, 2, 3) == [20, 30]


@pytest.mark.parametrize("nbytes", [5, 8])
def test_only_rows_that_differ_are_written(nbytes):
    inner = Watched(10, nbytes)
    store = RewrittenStore(inner)
    store.write(np.array([2, 3, 4]), flat(20, 30, 40, nbytes=nbytes))
    other = flat(20, 30, 40, nbytes=nbytes)
    other[1, -1] = 31
    store.write(np.array([2, 3, 4]), other)
    assert inner.written == [2, 3, 4, 3]
    out = np.empty((3, nbytes), np.uint8)
    store.read(np.array([2, 3, 4]), out)
    assert (out == other).all()
    store.write(np.array([2, 3, 4]), flat(20, 30, 40, nbytes=nbytes))
    assert read(store, 2, 3, 4) == [20, 30, 40]
    store.read(np.array([2, 3, 4]), out)
    assert (out == flat(20, 30, 40, nbytes=nbytes)).all()


def test_the_same_rows_for_other_cells_are_written():
    inner = Watched(10, 8)
    store = RewrittenStore(inner)
    store.write(np.array([2, 3]), flat(20, 30))
    store.write(np.array([3, 2]), flat(20, 30))
    store.write(np.array([3]), flat(20))
    assert inner.written == [2, 3, 3, 2, 3]
    assert read(store, 2, 3) == [30, 20]


def test_the_rows_given_to_a_write_are_copied():
    inner, rows = Watched(10, 8), flat(20)
    store = RewrittenStore(inner)
    store.write(np.array([2]), rows)
    rows[:] = 21
    store.write(np.array([2]), rows)
    assert read(store, 2) == [21]


def test_a_failed_write_can_be_repeated():
    inner = Watched(10, 8)
    store = RewrittenStore(inner)
    store.write(np.array([2, 3]), flat(20, 30))
    for cells, rows in ((np.array([2, 3]), flat(20, 31)), (np.array([4]), flat(40))):
        inner.fails = True
        with pytest.raises(HeapFullError):
            store.write(cells, rows)
        assert read(store, 2, 3, 4)[2] == 0
        inner.fails = False
        store.write(cells, rows)
    assert read(store, 2, 3, 4) == [20, 31, 40]


def test_after_clearing_the_same_rows_are_written_again():
    store = RewrittenStore(Watched(10, 8))
    store.write(np.array([2]), flat(20))
    store.clear()
    assert read(store, 2) == [0]
    store.write(np.array([2]), flat(20))
    assert read(store, 2) == [20]
    assert store.stored_nbytes() == 8


def test_the_remembered_rows_count_as_overhead():
    inner = Watched(10, 8)
    store = RewrittenStore(inner)
    assert (store.cells, store.row_nbytes, store.describe()) == (10, 8, "none")
    before = store.overhead
    store.write(np.array([2, 3]), flat(20, 30))
    assert store.overhead == before + 16
    assert store.holds(np.array([2])).all()


def test_the_remembered_rows_are_pickled():
    store = pickle.loads(pickle.dumps(RewrittenStore(RawStore(10, 8))))
    store.write(np.array([2]), flat(20))
    store = pickle.loads(pickle.dumps(store))
    store.write(np.array([2]), flat(20))
    store.write(np.array([2]), flat(21))
    assert read(store, 2) == [21]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    writes=st.lists(
        st.tuples(
            st.lists(st.integers(0, 4), min_size=1, max_size=3, unique=True), st.integers(0, 2), st.integers(0, 9)
        ),
        max_size=20,
    )
)
def test_it_reads_like_a_plain_array(writes):
    inner, plain = Watched(5, 8), np.zeros((5, 8), np.uint8)
    store = RewrittenStore(inner)
    for cells, value, fails in writes:
        rows = flat(*[value + number for number in range(len(cells))])
        inner.fails = not fails
        try:
            store.write(np.array(cells), rows)
            plain[cells] = rows
        except HeapFullError:
            pass
        assert read(store, *range(5)) == plain[:, 0].tolist()


def test_after_a_write_that_failed_halfway_the_rows_before_it_are_written_again():
    """A long write is cut into steps: if it fails, some of its cells may have their new content."""

    class Halfway(Watched):
        def write(self, cells, obs, next_obs=None, /):
            half = len(cells) // 2 if self.fails else len(cells)
            RawStore.write(self, cells[:half], obs[:half], next_obs)
            if self.fails:
                raise HeapFullError("memory", 1, 0)

    inner = Halfway(10, 8)
    store = RewrittenStore(inner)
    store.write(np.array([2, 3]), flat(20, 30))
    inner.fails = True
    with pytest.raises(HeapFullError):
        store.write(np.array([2, 3]), flat(21, 31))
    inner.fails = False
    store.write(np.array([2, 3]), flat(20, 30))
    assert read(store, 2, 3) == [20, 30]
