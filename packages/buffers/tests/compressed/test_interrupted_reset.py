"""A ``reset`` or a ``get`` that is interrupted at any of its lines can be repeated, and so can ``add`` after it."""

import copy
import pickle
import sys

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import ReplayBuffer, RolloutBuffer

from sb3_extra_buffers.compressed import CompressedReplayBuffer, CompressedRolloutBuffer

ROWS, ENVS = 6, 2
SPACE, ACTIONS = spaces.Box(-9, 9, (80,), np.float32), spaces.Discrete(5)


def interrupted(call, at):
    """Call a function and interrupt it at the n-th line of a buffer or a store; return whether it got there."""

    def trace(frame, event, _):
        nonlocal at
        if not frame.f_globals.get("__name__", "").startswith(
            ("sb3_extra_buffers", "stable_baselines3.common.buffers")
        ):
            return None
        at -= event == "line"
        if at < 0:
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def fill(buffer, walk, steps=ROWS, seed=0):
    for number, (obs, next_obs, *rest, infos) in enumerate(walk(SPACE, ACTIONS, ENVS, steps, seed=seed)):
        value = th.full((ENVS,), float(number))
        if isinstance(buffer, RolloutBuffer):
            buffer.add(obs, *rest, value, value)
        else:
            buffer.add(obs, next_obs, *rest, infos)
    return buffer


def rollouts(**options):
    theirs = RolloutBuffer(ROWS, SPACE, ACTIONS, "cpu", n_envs=ENVS)
    return theirs, CompressedRolloutBuffer(ROWS, SPACE, ACTIONS, "cpu", n_envs=ENVS, **options)


def batches(buffer):
    np.random.seed(1)
    return [part.numpy() for batch in buffer.get(5) for part in batch]


def assert_same(ours, theirs):
    for one, other in zip(batches(ours), batches(theirs), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("options", [{"compression_method": "none"}, {"compression_method": "gzip", "layout": "cells"}])
@pytest.mark.parametrize("was_read", [False, True])
def test_a_rollout_whose_reset_was_interrupted_is_whole_or_empty(options, was_read, walk):
    theirs, ours = rollouts(**options)
    fill(theirs, walk), fill(ours, walk)
    if was_read:
        batches(ours)
    following = fill(rollouts()[0], walk, seed=1)
    for at in range(1_000):
        twin = copy.deepcopy(ours)
        if not interrupted(twin.reset, at):
            break
        if twin.full:
            assert_same(copy.deepcopy(twin), copy.deepcopy(theirs))
            twin.reset()
        assert pickle.loads(pickle.dumps(twin)).size() == 0
        assert_same(fill(twin, walk, seed=1), copy.deepcopy(following))
    assert at > 20


def test_an_interrupt_while_arrays_are_flattened_leaves_none_flat(walk):
    theirs, ours = rollouts(compression_method="none")
    fill(theirs, walk), fill(ours, walk)
    for at in range(1_000):
        twin = copy.deepcopy(ours)
        if not interrupted(lambda: next(twin.get(5)), at):  # noqa: B023 - called at once
            break
        assert_same(twin, copy.deepcopy(theirs))
    assert at > 20


def test_a_full_replay_buffer_whose_reset_was_interrupted_is_whole_or_empty(walk):
    options = {"n_envs": ENVS, "optimize_memory_usage": True, "handle_timeout_termination": False}
    theirs = fill(ReplayBuffer(ROWS * ENVS, SPACE, ACTIONS, "cpu", **options), walk, ROWS + 2)
    ours = fill(CompressedReplayBuffer(ROWS * ENVS, SPACE, ACTIONS, "cpu", **options), walk, ROWS + 2)
    for at in range(1_000):
        twin = copy.deepcopy(ours)
        if not interrupted(twin.reset, at):
            break
        if twin.full:
            assert twin.pos == theirs.pos
        assert twin.full or twin.pos == 0
        twin.full and twin.reset()
        fill(twin, walk, 3, seed=2)
        new = fill(ReplayBuffer(ROWS * ENVS, SPACE, ACTIONS, "cpu", **options), walk, 3, seed=2)
        np.testing.assert_array_equal(np.asarray(twin.observations)[:4], new.observations[:4])
    assert at > 10
