"""A budget of bytes is kept: what is oldest is dropped and counted, or the step is refused and nothing changes."""

import numpy as np
import pytest
import torch as th
from gpu_player import ACTIONS, SPACES
from stable_baselines3.common.buffers import ReplayBuffer

from sb3_extra_buffers.errors import HeapFullError, ParameterError
from sb3_extra_buffers.gpu_buffers import GpuReplayBuffer

IMAGE = SPACES["image"]
NOISE = np.random.default_rng(0).integers(256, size=(400, 2, *IMAGE.shape), dtype=np.uint8)


def fill(buffer, steps, first=0):
    for step in range(first, first + steps):
        buffer.add(NOISE[step], NOISE[step + 1], np.full(2, step), np.full(2, step), np.zeros(2), [{}, {}])


@pytest.mark.parametrize("codec", ["none", "rle", "gzip"])
@pytest.mark.parametrize("decode_on", ["host", "auto"])
def test_the_oldest_transitions_are_dropped_and_the_others_are_right(codec, decode_on):
    options = {"compression_method": codec, "heap_bytes": 60 * 600, "on_full": "evict", "decode_on": decode_on}
    ours = GpuReplayBuffer(200, IMAGE, ACTIONS, "cpu", 2, **options)
    fill(ours, 90)
    report = ours.memory_report()
    assert 40 <= report.transitions <= 60 * 600 // 576
    assert report.evicted == 2 * 90 - report.transitions
    assert ours.shared_heap.capacity <= 60 * 600
    np.random.seed(0)
    batch = ours.sample(500)
    steps = batch.rewards[:, 0].int().tolist()
    assert min(steps) == 90 - report.transitions // 2
    for step, obs, next_obs in zip(steps, batch.observations.numpy(), batch.next_observations.numpy()):
        env = 0 if obs.tobytes() == NOISE[step, 0].tobytes() else 1
        assert obs.tobytes() == NOISE[step, env].tobytes()
        assert next_obs.tobytes() == NOISE[step + 1, env].tobytes()


@pytest.mark.parametrize("options", [{}, {"on_full": "raise"}], ids=["default", "asked for"])
def test_a_full_budget_refuses_and_keeps_all(options):
    ours = GpuReplayBuffer(200, IMAGE, ACTIONS, "cpu", 2, heap_bytes=40 * 576, **options)
    theirs = ReplayBuffer(200, IMAGE, ACTIONS, "cpu", 2)
    with pytest.raises(HeapFullError, match="on_full='evict'"):
        fill(ours, 100)
    stored = ours.pos
    assert 15 <= stored <= 20
    fill(theirs, stored)
    assert ours.shared_heap.evicted.cells == 0
    np.random.seed(3)
    found = ours.sample(100)
    np.random.seed(3)
    expected = theirs.sample(100)
    assert th.equal(found.observations, expected.observations)
    assert th.equal(found.next_observations, expected.next_observations)


def test_on_full_raise_keeps_frames_too(same_batches):
    """A chunk that finds no room stays where it was filled: its steps were taken, and are not lost."""
    options = {"compression_method": "auto", "layout": "frames", "heap_bytes": 20_000, "on_full": "raise"}
    ours = GpuReplayBuffer(400, IMAGE, ACTIONS, "cpu", 2, **options)
    theirs = ReplayBuffer(400, IMAGE, ACTIONS, "cpu", 2)
    with pytest.raises(HeapFullError, match="on_full='evict'"):
        fill(ours, 200)
    stored = ours.pos
    assert stored > 16
    fill(theirs, stored)
    for _ in range(2):
        with pytest.raises(HeapFullError, match="on_full='evict'"):
            fill(ours, 1, first=stored)
        report = ours.memory_report()
        assert (report.transitions, report.evicted) == (2 * stored, 0)
        same_batches(ours, theirs, size=200)


def test_a_full_lap_does_not_count_as_full():
    """What is replaced makes room for what replaces it: in a published version, both had to fit."""
    ours = GpuReplayBuffer(20, IMAGE, ACTIONS, "cpu", 2, heap_bytes=24 * 576, on_full="raise")
    theirs = ReplayBuffer(20, IMAGE, ACTIONS, "cpu", 2)
    for buffer in (ours, theirs):
        fill(buffer, 57)
    np.random.seed(3)
    found = ours.sample(100).observations
    np.random.seed(3)
    assert th.equal(found, theirs.sample(100).observations)


def test_cells_that_shrink_and_grow_again(play, same_batches):
    ours = GpuReplayBuffer(24, IMAGE, ACTIONS, "cpu", 2, compression_method="rle", heap_bytes=52 * 592, on_full="evict")
    theirs = ReplayBuffer(24, IMAGE, ACTIONS, "cpu", 2)
    still = np.ones((2, *IMAGE.shape), np.uint8)
    for lap in range(4):
        for step in range(12):
            obs = NOISE[step + 12 * lap] if lap % 2 else still * step
            args = obs, obs, np.zeros(2), np.zeros(2), np.ones(2), [{}, {}]
            ours.add(*args)
            theirs.add(*args)
        same_batches(ours, theirs)
    assert ours.shared_heap.evicted.cells == 0


@pytest.mark.parametrize("on_full", ["evict", "raise"])
def test_a_step_that_can_never_fit_is_refused_and_leaves_the_buffer_as_it_was(on_full):
    ours = GpuReplayBuffer(20, IMAGE, ACTIONS, "cpu", 2, heap_bytes=1000, on_full=on_full)
    with pytest.raises(HeapFullError, match="give a larger heap_bytes"):
        fill(ours, 1)
    assert (ours.pos, ours.size(), ours.shared_heap.live) == (0, 0, 0)


def test_a_heap_of_no_bytes_and_a_wrong_word():
    for options, word in (({"heap_bytes": 0}, "heap_bytes"), ({"heap_bytes": 9999, "on_full": "panic"}, "on_full")):
        with pytest.raises(ParameterError, match=word):
            GpuReplayBuffer(20, IMAGE, ACTIONS, "cpu", 2, **options)
    with pytest.raises(ParameterError, match="without heap_bytes there is no limit"):
        GpuReplayBuffer(20, IMAGE, ACTIONS, "cpu", 2, on_full="evict")


@pytest.mark.parametrize("word", ["heap", "heap_kwargs"])
def test_the_heap_is_not_chosen_by_name(word):
    with pytest.raises(ParameterError, match="Use buffer_device and heap_bytes"):
        GpuReplayBuffer(20, IMAGE, ACTIONS, "cpu", 2, **{word: "ring"})


def test_max_slot_bytes_still_works_and_says_what_to_do():
    with pytest.warns(DeprecationWarning, match="grows with what is stored"):
        ours = GpuReplayBuffer(20, IMAGE, ACTIONS, "cpu", 2, max_slot_bytes=1000)
    assert ours.shared_heap.capacity == 20 * 2 * 1000 // 16 * 16


def test_max_slot_bytes_that_is_no_number_is_named_in_the_error():
    with pytest.raises(ParameterError, match="max_slot_bytes='1kB'"):
        GpuReplayBuffer(20, IMAGE, ACTIONS, "cpu", 2, max_slot_bytes="1kB")


def test_without_a_budget_the_heap_holds_a_tenth_more_than_what_is_live():
    ours = GpuReplayBuffer(4000, IMAGE, ACTIONS, "cpu", 2)
    for _ in range(6):
        fill(ours, 390)
    heap = ours.shared_heap
    assert heap.live > 1 << 20
    assert heap.capacity <= 1.1 * heap.live + 2 * 576 + (1 << 17)
