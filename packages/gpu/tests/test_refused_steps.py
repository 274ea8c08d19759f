"""A step for which there is no room is refused, and what was there before is still there, or counted as lost."""

import numpy as np
import pytest
from gpu_player import ACTIONS, SPACES
from gymnasium import spaces
from stable_baselines3.common.buffers import ReplayBuffer

from sb3_extra_buffers.errors import HeapFullError
from sb3_extra_buffers.gpu_buffers import GpuDictReplayBuffer, GpuReplayBuffer

IMAGE = SPACES["image"]
VECTOR = spaces.Box(0, 255, (250,), np.uint8)  # too small to be compared, unless a step may be refused
NOISE = np.random.default_rng(0).integers(256, size=(90, 1, *IMAGE.shape), dtype=np.uint8)


def still(space, number):
    return np.full((1, *space.shape), number, np.uint8)


def noise(space, number):
    return NOISE[number].reshape(1, -1)[:, : np.prod(space.shape)].reshape(1, *space.shape)


def add(buffers, obs, next_obs, number):
    for buffer in buffers:
        buffer.add(obs, next_obs, np.zeros(1), np.full(1, number), np.zeros(1), [{}])


def steps_of(buffer):
    """The numbers of all steps that can be sampled."""
    return sorted(set(buffer.sample(2000).rewards[:, 0].int().tolist()))


def until_refused(buffer, steps, pair):
    """The number of the first step that finds no room."""
    step = None
    try:
        for step in steps:
            add([buffer], *pair(step), step)
    except HeapFullError:
        return step
    raise AssertionError("there was room for all of them")


@pytest.mark.parametrize("space", [IMAGE, VECTOR], ids=["image", "vector"])
@pytest.mark.parametrize("codec", ["rle", "gzip"])
@pytest.mark.parametrize("is_shared", [True, False], ids=["shared", "apart"])
def test_a_refused_step_leaves_a_full_buffer_as_it_was(space, codec, is_shared, same_batches):
    # Of what stands still all of it fits, and of noise half.
    heap_bytes = 20 * 48 + 6 * int(np.prod(space.shape))
    options = {"compression_method": codec, "heap_bytes": heap_bytes, "on_full": "raise"}
    ours = GpuReplayBuffer(20, space, ACTIONS, "cpu", **options)
    theirs = ReplayBuffer(20, space, ACTIONS, "cpu")
    for step in range(20):
        add([ours, theirs], still(space, step), still(space, step + (1 if is_shared else 100)), step)
    refused = 0
    for step in range(20, 80):
        pair = noise(space, step), noise(space, step + (1 if is_shared else 9))
        try:
            add([ours], *pair, step)
        except HeapFullError:
            refused += 1
            report = ours.memory_report()
            assert (report.transitions, report.evicted) == (20, 0)
        else:
            add([theirs], *pair, step)
        same_batches(ours, theirs, size=200)
    assert refused > 10


@pytest.mark.parametrize("on_full", ["evict", "raise"])
@pytest.mark.parametrize("space", [IMAGE, VECTOR], ids=["image", "vector"])
@pytest.mark.parametrize("before", [3, 12], ids=["filling", "full"])
def test_what_a_step_leads_to_may_not_be_larger_than_the_budget(on_full, space, before):
    """It would wait for a place that never comes, and keep everything out that follows."""
    options = {"compression_method": "rle", "heap_bytes": int(np.prod(space.shape)) - 16, "on_full": on_full}
    ours = GpuReplayBuffer(5, space, ACTIONS, "cpu", **options)
    for step in range(before):
        add([ours], still(space, step), still(space, step + 1), step)
    kept = steps_of(ours)
    for _ in range(2):
        with pytest.raises(HeapFullError, match="must fit as a whole: give a larger heap_bytes"):
            add([ours], still(space, before), noise(space, 0), 50)
        assert steps_of(ours) == kept
    for step in range(60, 66):
        add([ours], still(space, step), still(space, step + 1), step)
    assert steps_of(ours)[-1] == 65


def test_a_step_of_several_keys_that_is_refused_half_way_is_counted_as_lost():
    space = spaces.Dict({"first": IMAGE, "second": IMAGE})
    options = {"compression_method": "rle", "heap_bytes": 20 * 48 + 7 * 576, "on_full": "raise"}
    ours = GpuDictReplayBuffer(20, space, ACTIONS, "cpu", **options)

    def both(make, step):
        return [{key: make(IMAGE, step + then) for key in space} for then in (0, 1)]

    for step in range(20):
        add([ours], *both(still, step), step)
    step = until_refused(ours, range(20, 80), lambda step: both(noise, step))
    for _ in range(2):
        found = steps_of(ours)
        report = ours.memory_report()
        assert (report.transitions, report.evicted) == (len(found), 20 - len(found))
        assert found == [*range(step - len(found), step)]
        with pytest.raises(HeapFullError):
            add([ours], *both(noise, step), step)
    assert len(found) == 19
    ours.reset()
    add([ours], *both(still, 0), 0)
    assert (steps_of(ours), ours.memory_report().evicted) == ([0], 0)


def test_frames_that_are_refused_lose_no_more_than_the_oldest_step():
    options = {"compression_method": "auto", "layout": "frames", "heap_bytes": 20_000, "on_full": "raise"}
    ours = GpuReplayBuffer(60, IMAGE, ACTIONS, "cpu", **options)
    for step in range(60):
        add([ours], still(IMAGE, step), still(IMAGE, step + 1), step)
    until_refused(ours, range(60, 200), lambda step: [noise(IMAGE, (step + then) % 80) for then in (0, 1)])
    found, report = steps_of(ours), ours.memory_report()
    assert len(found) >= 59
    assert (report.transitions, report.evicted) == (len(found), 60 - len(found))
