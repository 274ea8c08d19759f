"""``DeferredStore``: the first writes are held until the data say how to store them, and nothing is lost."""

import pickle

import numpy as np
import pytest

from sb3_extra_buffers import heaps
from sb3_extra_buffers.checkpoints import StateError
from sb3_extra_buffers.codecs import CellSpec, bind
from sb3_extra_buffers.errors import HeapFullError
from sb3_extra_buffers.stores import (
    CellStore,
    DeferredStore,
    FrameRequest,
    Place,
    RawStore,
    build_stores,
    preference,
    resolve,
)


def make(shape, cells=50, planes=2, streams=1):
    request = FrameRequest(
        "x", shape, np.dtype(np.uint8), cells, streams, has_next=planes == 2, preference=preference("x", "speed")
    )
    (store,), _ = build_stores([request], Place())
    return store


def row(*frames):
    return np.concatenate([frame.reshape(-1) for frame in frames])[np.newaxis]


@pytest.fixture
def images():
    return np.random.default_rng(0).integers(0, 256, (200, 20, 20)).astype(np.uint8)


def test_the_first_shift_by_one_frame_decides(images):
    store = make((3, 20, 20))
    store.write(np.array([0]), row(*images[:3]))
    assert store.describe().startswith("frames (not yet known how they are stacked; patches, ")
    store.write(np.array([0]), None, row(*images[1:4]))
    assert store.describe().startswith("frames (3 x 400 bytes, stacked first; patches, ")


def test_held_writes_can_be_read_and_are_stored_after_the_choice(images):
    store, still = make((3, 20, 20)), row(images[0], images[0], images[0])
    store.write(np.array([7]), still, still)
    store.write(np.array([8]), still, still)
    out, following = np.ones((3, 1200), np.uint8), np.ones((3, 1200), np.uint8)
    store.read(np.array([8, 7, 6]), out, following)
    np.testing.assert_array_equal(out, np.concatenate([still, still, np.zeros_like(still)]))
    np.testing.assert_array_equal(out, following)
    assert store.stored_nbytes() == 4 * 1200
    store.write(np.array([9]), row(*images[:3]), row(*images[1:4]))
    for is_next, expected in ((False, row(*images[:3])), (True, row(*images[1:4]))):
        store.read(np.array([7, 8, 9]), *((None, out) if is_next else (out, None)))
        np.testing.assert_array_equal(out, np.concatenate([still, still, expected]))
    assert "3 x 400 bytes" in store.describe()


def test_observations_that_never_shift_are_one_frame_each(images):
    store = make((3, 20, 20), cells=60)
    rows = np.random.default_rng(1).integers(0, 256, (40, 1200)).astype(np.uint8)
    for cell, content in enumerate(rows):
        store.write(np.array([cell]), content[np.newaxis])
    assert "1 x 1200 bytes" in store.describe()
    out = np.empty((40, 1200), np.uint8)
    store.read(np.arange(40), out)
    np.testing.assert_array_equal(out, rows)


def test_shifts_are_looked_for_in_each_environment(images):
    store = make((4, 20, 20), streams=2)
    for step in range(2):
        rows = np.concatenate([row(*images[step : step + 4]), row(*images[100 + step : 104 + step])])
        store.write(np.array([0, 1]) + 2 * step, rows)
    assert "4 x 400 bytes" in store.describe()


def test_held_writes_are_limited_in_size(images):
    store = make((2, 1024, 1024), cells=20)
    for cell in range(6):
        store.write(np.array([cell]), np.full((1, 2 << 20), cell, np.uint8))
    assert "1 x 2097152 bytes" in store.describe()


def test_an_image_that_cannot_be_a_stack_needs_no_choice():
    assert "1 x 400 bytes" in make((20, 20)).describe()


def test_clearing_drops_held_writes(images):
    store = make((3, 20, 20))
    store.write(np.array([0]), row(*images[:3]))
    store.clear()
    out = np.ones((1, 1200), np.uint8)
    store.read(np.array([0]), out)
    assert not out.any()
    assert store.stored_nbytes() == 0


def test_held_writes_are_pickled(images):
    store = make((3, 20, 20))
    store.write(np.array([0]), row(*images[:3]))
    twin = pickle.loads(pickle.dumps(store))
    twin.write(np.array([1]), row(*images[1:4]))
    out = np.empty((2, 1200), np.uint8)
    twin.read(np.array([0, 1]), out)
    np.testing.assert_array_equal(out, np.concatenate([row(*images[:3]), row(*images[1:4])]))


def test_observations_of_several_short_rollouts_decide_together(images):
    """No rollout is long enough by itself."""
    store = make((3, 20, 20), cells=5, planes=1)
    rows = np.random.default_rng(1).integers(0, 256, (40, 1200)).astype(np.uint8)
    for rollout in rows.reshape(8, 5, 1200):
        store.clear()
        for cell, content in enumerate(rollout):
            store.write(np.array([cell]), content[np.newaxis])
    assert "1 x 1200 bytes" in store.describe()
    out = np.empty((5, 1200), np.uint8)
    store.read(np.arange(5), out)
    np.testing.assert_array_equal(out, rows[-5:])


def test_a_state_with_next_observations_that_the_store_does_not_have_is_refused(images):
    """Held writes of next observations, for a store that has none."""
    store = make((3, 20, 20), planes=1)
    store.write(np.array([0]), row(*images[:3]))
    state = store.state()
    make((3, 20, 20), planes=1).restore(state)
    state.facts["planes"] = [1]
    with pytest.raises(StateError, match="held writes do not fit the store"):
        make((3, 20, 20), planes=1).restore(state)


class ChooseLate:
    """Chooses a store at a given write."""

    def __init__(self, writes, store):
        self.writes, self.store, self.forgotten = writes, store, 0

    def choose(self, held, write):
        return self.store if len(held) + 1 >= self.writes else None

    def forget(self):
        self.forgotten += 1

    def describe(self):
        return "not yet"


def small(*values):
    return np.array(values, np.uint8).reshape(-1, 1).repeat(8, axis=1)


def read(store, *cells):
    out = np.full((len(cells), 8), 99, np.uint8)
    store.read(np.array(cells, np.int64), out)
    return out[:, 0].tolist()


def test_the_holder_replaces_the_store_by_the_chosen_one():
    chosen = RawStore(6, 8)
    store = DeferredStore(6, 8, ChooseLate(3, chosen))
    assert (store.active, store.chosen, resolve(store), store.describe()) == (None, None, store, "not yet")
    for cell in range(3):
        store.write(np.array([cell]), small(cell + 1))
        assert read(store, 0, 1, 2, 3) == [*range(1, cell + 2), *[0] * (3 - cell)]
    assert store.active is store.chosen is resolve(store) is chosen
    assert resolve(chosen) is chosen
    assert (store.describe(), store.overhead, store.stored_nbytes()) == ("none", chosen.overhead, 24)


def test_held_rows_are_copies_and_the_newest_write_of_a_cell_counts():
    store, rows = DeferredStore(6, 8, ChooseLate(4, RawStore(6, 8))), small(7, 8)
    store.write(np.array([2, 3]), rows)
    rows[:] = 1
    store.write(np.array([3]), small(9))
    assert read(store, 3, 2, 0) == [9, 7, 0]
    store.write(np.array([4]), small(5))
    store.write(np.array([4]), small(6))
    assert read(store, 3, 2, 4) == [9, 7, 6]


def test_origins_of_held_writes_are_in_memory():
    heap, codec = heaps.create("memory", 6), bind("rle", CellSpec(np.uint8, 8))
    store = DeferredStore(6, 8, ChooseLate(2, CellStore(codec, heap, 0, 6)))
    store.write(np.array([2]), small(7))
    found = store.origins(np.array([1, 2]))
    assert found.cells.tolist() == [-1, -1]
    ((rows, content),) = found.in_memory
    assert (rows.tolist(), content[:, 0].tolist()) == ([0, 1], [0, 7])
    store.write(np.array([1]), small(6))
    assert store.origins(np.array([1, 2])).cells.tolist() == [1, 2]


def test_clearing_keeps_the_chosen_store():
    chooser = ChooseLate(1, RawStore(6, 8))
    store = DeferredStore(6, 8, chooser)
    store.write(np.array([2]), small(7))
    store.clear()
    assert (store.chosen, read(store, 2), chooser.forgotten) == (chooser.store, [0], 1)


def test_held_rows_that_do_not_fit_are_lost_and_the_others_are_stored():
    heap, codec = heaps.create("ring", 6, capacity=20), bind("none", CellSpec(np.uint8, 8))
    store = DeferredStore(6, 8, ChooseLate(3, CellStore(codec, heap, 0, 6)))
    store.write(np.array([1, 2, 3]), small(1, 2, 3))  # 24 bytes at once
    store.write(np.array([4]), small(4))
    with pytest.raises(HeapFullError) as raised:
        store.write(np.array([5]), small(5))
    assert not raised.value.never_fits  # the row that is being written does fit
    assert store.chosen is not None
    store.write(np.array([5]), small(5))
    assert store.holds(np.arange(6)).tolist() == [False] * 4 + [True] * 2
    assert read(store, 4, 5) == [4, 5]


class RefusedOnce(RawStore):
    """The system refuses the memory of its first write."""

    was_refused = False

    def write(self, cells, obs, next_obs=None, /):
        if not self.was_refused:
            self.was_refused = True
            raise HeapFullError("memory", 8, 0) from MemoryError()
        super().write(cells, obs, next_obs)


def test_held_rows_stay_if_memory_was_refused():
    store = DeferredStore(6, 8, ChooseLate(3, RefusedOnce(6, 8)))
    store.write(np.array([1]), small(1))
    store.write(np.array([2]), small(2))
    with pytest.raises(HeapFullError):
        store.write(np.array([3]), small(3))
    assert (store.chosen, read(store, 1, 2, 3)) == (None, [1, 2, 0])
    store.write(np.array([3]), small(3))
    assert read(store, 1, 2, 3) == [1, 2, 3]
