"""How frames are stacked is found out from the first observations, which are not lost meanwhile."""

import pickle

import numpy as np
import pytest

from sb3_extra_buffers import heaps
from sb3_extra_buffers.checkpoints import StateError
from sb3_extra_buffers.stores import FrameDemand, preference


def make(shape, cells=50, planes=2, streams=1):
    demand = FrameDemand("x", shape, np.dtype(np.uint8), cells, planes, streams, preference("x", "speed"), None)
    return demand.build(heaps.create("memory", demand.slots), 0, None)


def row(*frames):
    return np.concatenate([frame.reshape(-1) for frame in frames])[np.newaxis]


@pytest.fixture
def images():
    return np.random.default_rng(0).integers(0, 256, (200, 20, 20)).astype(np.uint8)


def test_the_first_shift_decides(images):
    store = make((3, 20, 20))
    store.write(0, np.array([0]), row(*images[:3]))
    assert store.codec.startswith("frames (not yet known how they are stacked; patches, ")
    store.write(1, np.array([0]), row(*images[1:4]))
    assert store.codec.startswith("frames (3 x 400 bytes, stacked first; patches, ")


def test_what_was_held_back_can_be_read_and_is_stored_in_the_end(images):
    store, still = make((3, 20, 20)), row(images[0], images[0], images[0])
    store.write_both(np.array([7]), still, still)
    store.write_both(np.array([8]), still, still)
    out, following = np.ones((3, 1200), np.uint8), np.ones((3, 1200), np.uint8)
    store.read_both(np.array([8, 7, 6]), out, following)
    np.testing.assert_array_equal(out, np.concatenate([still, still, np.zeros_like(still)]))
    np.testing.assert_array_equal(out, following)
    assert store.stored_nbytes() == 4 * 1200
    store.write_both(np.array([9]), row(*images[:3]), row(*images[1:4]))
    for plane, expected in ((0, row(*images[:3])), (1, row(*images[1:4]))):
        store.read(plane, np.array([7, 8, 9]), out)
        np.testing.assert_array_equal(out, np.concatenate([still, still, expected]))
    assert "3 x 400 bytes" in store.codec


def test_what_never_shifts_is_one_frame_each(images):
    store = make((3, 20, 20), cells=60)
    rows = np.random.default_rng(1).integers(0, 256, (40, 1200)).astype(np.uint8)
    for cell, content in enumerate(rows):
        store.write(0, np.array([cell]), content[np.newaxis])
    assert "1 x 1200 bytes" in store.codec
    out = np.empty((40, 1200), np.uint8)
    store.read(0, np.arange(40), out)
    np.testing.assert_array_equal(out, rows)


def test_environments_are_judged_apart(images):
    store = make((4, 20, 20), streams=2)
    for step in range(2):
        rows = np.concatenate([row(*images[step : step + 4]), row(*images[100 + step : 104 + step])])
        store.write(0, np.array([0, 1]) + 2 * step, rows)
    assert "4 x 400 bytes" in store.codec


def test_not_everything_is_held_back(images):
    store = make((2, 1024, 1024), cells=20)
    for cell in range(6):
        store.write(0, np.array([cell]), np.full((1, 2 << 20), cell, np.uint8))
    assert "1 x 2097152 bytes" in store.codec


def test_an_image_that_cannot_be_a_stack_waits_for_nothing():
    assert "1 x 400 bytes" in make((20, 20)).codec


def test_clearing_forgets_what_was_held_back(images):
    store = make((3, 20, 20))
    store.write(0, np.array([0]), row(*images[:3]))
    store.clear()
    out = np.ones((1, 1200), np.uint8)
    store.read(0, np.array([0]), out)
    assert not out.any()
    assert store.stored_nbytes() == 0


def test_it_pickles_undecided(images):
    store = make((3, 20, 20))
    store.write(0, np.array([0]), row(*images[:3]))
    twin = pickle.loads(pickle.dumps(store))
    twin.write(0, np.array([1]), row(*images[1:4]))
    out = np.empty((2, 1200), np.uint8)
    twin.read(0, np.array([0, 1]), out)
    np.testing.assert_array_equal(out, np.concatenate([row(*images[:3]), row(*images[1:4])]))


def test_what_was_learnt_from_short_rollouts_adds_up(images):
    """None of them is long enough by itself."""
    store = make((3, 20, 20), cells=5, planes=1)
    rows = np.random.default_rng(1).integers(0, 256, (40, 1200)).astype(np.uint8)
    for rollout in rows.reshape(8, 5, 1200):
        store.clear()
        for cell, content in enumerate(rollout):
            store.write(0, np.array([cell]), content[np.newaxis])
    assert "1 x 1200 bytes" in store.codec
    out = np.empty((5, 1200), np.uint8)
    store.read(0, np.arange(5), out)
    np.testing.assert_array_equal(out, rows[-5:])


def test_a_state_with_a_plane_that_is_not_there_is_refused(images):
    """Whoever wrote to it would write somewhere else."""
    store = make((3, 20, 20), planes=1)
    store.write(0, np.array([0]), row(*images[:3]))
    state = store.state()
    make((3, 20, 20), planes=1).restore(state)
    state.facts["planes"] = [1]
    with pytest.raises(StateError, match="observations are held back that nobody wrote"):
        make((3, 20, 20), planes=1).restore(state)
