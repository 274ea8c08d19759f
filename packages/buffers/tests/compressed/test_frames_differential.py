"""Buffers over stacked frames beside those of Stable-Baselines3: every stack, reset and violation, bit by bit."""

import numpy as np
import pytest
import torch as th
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.buffers import RolloutBuffer
from stacked_scenes import ACTIONS, EVENTS, KINDS, STACKS, Scene, add, expect_same_arrays, make

from sb3_extra_buffers import codecs
from sb3_extra_buffers.compressed import CompressedRolloutBuffer


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("n_envs", [1, 3])
def test_samples_are_those_of_the_original(kind, stack, n_envs, same_samples):
    scene = Scene(stack, n_envs, seed=1)
    ours, theirs = make(kind, scene, 23, n_envs, layout="frames")
    weights = [0.8, 0.05, 0.05, 0.02, 0.03, 0.05]
    for number in range(90):
        add([ours, theirs], scene, scene.rng.choice(EVENTS, n_envs, p=weights), number)
        if number % 11 == 0:
            same_samples(ours, theirs, batch_size=(1, 7, 40)[number % 3], seed=number)
            expect_same_arrays(ours, theirs)


@pytest.mark.parametrize("codec", [*codecs.names(), "auto"])
@pytest.mark.parametrize("prefer", ["speed", "balanced", "memory"])
@pytest.mark.parametrize("heap", ["memory", "ring", "mmap"])
def test_every_codec_preference_and_heap(codec, prefer, heap, same_samples):
    scene = Scene("gray first", 2, seed=2)
    room = {"heap_kwargs": {"capacity": 1 << 20}} if heap == "ring" else {}
    ours, theirs = make(
        "plain", scene, 60, 2, layout="frames", compression_method=codec, prefer=prefer, heap=heap, **room
    )
    for number in range(150):
        add([ours, theirs], scene, scene.rng.choice(EVENTS, 2, p=[0.85, 0.05, 0.04, 0.01, 0.02, 0.03]), number)
    same_samples(ours, theirs, batch_size=200)
    expect_same_arrays(ours, theirs)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_whatever_happens_in_whatever_order(data):
    stack, n_envs = data.draw(st.sampled_from(sorted(STACKS))), data.draw(st.sampled_from([1, 2, 3]))
    kind, rows = data.draw(st.sampled_from(sorted(KINDS))), data.draw(st.integers(4, 9))
    scene = Scene(stack, n_envs, seed=data.draw(st.integers(0, 99)))
    prefer = data.draw(st.sampled_from(["speed", "memory"]))
    ours, theirs = make(kind, scene, rows, n_envs, layout="frames", prefer=prefer)
    steps = st.lists(st.lists(st.sampled_from(EVENTS), min_size=n_envs, max_size=n_envs), min_size=1, max_size=40)
    for number, events in enumerate(data.draw(steps)):
        add([ours, theirs], scene, events, number)
        if kind == "plain" and data.draw(st.integers(0, 9)) == 0:  # by hand, out of order
            row, name = (
                data.draw(st.integers(0, rows - 1)),
                data.draw(st.sampled_from(["observations", "next_observations"])),
            )
            value = getattr(theirs, name)[data.draw(st.integers(0, rows - 1))].copy()
            for buffer in (ours, theirs):
                getattr(buffer, name)[row] = value
    expect_same_arrays(ours, theirs)


@pytest.mark.parametrize("rows", range(1, 20))
def test_a_small_buffer_wraps_at_every_offset_of_a_chunk(rows):
    scene = Scene("gray first", 1, seed=rows)
    ours, theirs = make("plain", scene, rows, 1, layout="frames")
    for number in range(60):
        add([ours, theirs], scene, ["shift" if number % 9 else "zeros"], number)
        expect_same_arrays(ours, theirs)


@pytest.mark.parametrize("stack", ["gray first", "gray last", "not stacked"])
def test_rollouts(stack):
    scene = Scene(stack, 3, seed=4)
    ours, theirs = (
        kind(40, scene.space, ACTIONS, device="cpu", n_envs=3, **more)
        for kind, more in ((CompressedRolloutBuffer, {"layout": "frames"}), (RolloutBuffer, {}))
    )
    for rollout in range(3):
        for buffer in (ours, theirs):
            buffer.reset()
        for number in range(40):
            add([ours, theirs], scene, scene.rng.choice(EVENTS, 3, p=[0.8, 0.05, 0.05, 0.02, 0.03, 0.05]), number)
        found = []
        for buffer in (ours, theirs):
            buffer.compute_returns_and_advantage(th.zeros(3), np.zeros(3))
            np.random.seed(rollout)
            found.append([batch.observations.numpy() for batch in buffer.get(32)])
        for own, other in zip(*found):
            np.testing.assert_array_equal(own, other)


def test_the_stack_is_found_out(caplog):
    expected = {"gray first": "4 x 360 bytes, stacked first", "colour last": "3 x 360 bytes, stacked last"}
    for stack, text in expected.items():
        scene = Scene(stack, 1, seed=0)
        ours, _ = make("plain", scene, 50, 1, layout="frames")
        with caplog.at_level("INFO", logger="sb3_extra_buffers"):
            add([ours], scene, ["shift"], 0)
        assert text in ours.memory_report().keys[0].codec
        assert text in caplog.text


def test_terminal_observations_and_timeouts_are_exact():
    scene = Scene("gray first", 1, seed=5)
    ours, theirs = make("plain", scene, 30, 1, layout="frames", optimize_memory_usage=True)
    for number in range(100):
        add([ours, theirs], scene, ["end" if number % 4 == 3 else "shift"], number)
    expect_same_arrays(ours, theirs)
    np.testing.assert_array_equal(ours.timeouts, theirs.timeouts)
