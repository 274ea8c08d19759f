"""An interrupt at any line of a prioritized buffer is before a change or after it."""

import copy
import sys

import numpy as np
import pytest
from gymnasium import spaces

from sb3_extra_buffers.compressed import CompressedPrioritizedReplayBuffer
from sb3_extra_buffers.sum_tree import NumpyTreeKernels, SumTree

ROWS, ENVS = 4, 2
VECTOR = spaces.Box(-9, 9, (3,), np.float32)
FILES = ("sb3_extra_buffers/compressed/", "sb3_extra_buffers/sum_tree/", "stable_baselines3/common/buffers.py")
OPTIMIZED = {"optimize_memory_usage": True, "handle_timeout_termination": False}


def filled(steps, **arguments):
    settings = {"device": "cpu", "n_envs": ENVS, "alpha": 1, "min_priority": 1, "compression_method": "none"}
    buffer = CompressedPrioritizedReplayBuffer(ROWS * ENVS, VECTOR, spaces.Discrete(3), **settings, **arguments)
    # An update by numba is one call; numpy has lines in between.
    buffer._priorities.tree = SumTree(ROWS * ENVS, NumpyTreeKernels())
    for number in range(steps):
        add(buffer, number)
    return buffer


def add(buffer, number):
    obs = np.full((ENVS, 3), number % 7, np.float32)
    buffer.add(obs, obs + 1, np.zeros(ENVS), number * ENVS + np.arange(ENVS), np.zeros(ENVS), [{}] * ENVS)


def interrupted(make, call):
    """Buffers in which a call was interrupted at each of its lines; and one in which it was not."""
    at, is_done = 0, False
    while not is_done:
        at, buffer, count = at + 1, make(), 0

        def trace(frame, event, _arg, at=at):
            nonlocal count
            if not any(part in frame.f_code.co_filename.replace("\\", "/") for part in FILES):
                return None
            if event == "line":
                count += 1
                if count == at:
                    raise KeyboardInterrupt
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            call(buffer)
            is_done = True
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        yield buffer
    assert at > 15


def content(buffer):
    state = buffer._priorities
    return buffer.priorities().tolist(), state.largest, state.beta, state.steps


@pytest.mark.parametrize("steps", [3, ROWS + 1])
def test_an_update_is_complete_or_has_not_happened(steps):
    def update(buffer):
        buffer.update_priorities(np.array([2, 3, 2]), np.array([9.0, 5.0, 7.0]), 0.5)

    def make():
        buffer = filled(steps - 1)
        buffer.sample(3)
        add(buffer, steps - 1)  # not in the tree yet
        return buffer

    before, after = content(make()), make()
    update(after)
    found = [content(buffer) for buffer in interrupted(make, update)]
    assert all(state in (before, content(after)) for state in found)
    assert found[0] == before
    assert found[-1] == content(after) != before


@pytest.mark.parametrize("arguments", [{}, OPTIMIZED], ids=["plain", "optimized"])
@pytest.mark.parametrize("steps", [2, ROWS - 1, ROWS + 2])
def test_an_add_is_complete_or_its_step_has_no_mass(steps, arguments):
    def make():
        buffer = filled(steps, **arguments)
        buffer.sample(3)
        newest = np.arange((steps - 1) * ENVS, steps * ENVS)
        buffer.update_priorities(newest, np.full(ENVS, 4.0), 1.0)
        return buffer

    complete = make()
    add(complete, steps)
    for buffer in interrupted(make, lambda buffer: add(buffer, steps)):
        mass = buffer.priorities()
        is_added = buffer.pos == complete.pos
        if buffer._is_torn:
            assert not mass[buffer.pos].any()
        sample = buffer.sample(20)
        if not is_added or not arguments:
            assert np.array_equal(sample.rewards[:, 0].numpy(), sample.leaf_nodes_indices)
        assert set(sample.leaf_nodes_indices // ENVS) <= set(range(max(0, steps - ROWS), steps + 1))
        if not is_added:
            add(buffer, steps)
        assert content(buffer) == content(complete)


@pytest.mark.parametrize("steps", [3, ROWS, ROWS + 1])
def test_a_reset_that_is_interrupted_can_be_repeated_or_ignored(steps):
    for buffer in interrupted(lambda: filled(steps), lambda buffer: buffer.reset()):
        if buffer.size():
            assert np.array_equal(buffer.sample(9).rewards[:, 0].numpy() % 1, np.zeros(9))
            buffer.reset()
        add(buffer, 0)
        twin = copy.deepcopy(buffer)
        for one in (buffer, twin):
            sample = one.sample(9)
            assert set(sample.rewards[:, 0].tolist()) == {0.0, 1.0}
            assert np.count_nonzero(one.priorities()) == ENVS
