"""Observations in another order than that of C, as image wrappers hand them over, beside the original buffers."""

import copy
from itertools import pairwise

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import (
    DictReplayBuffer,
    DictRolloutBuffer,
    NStepReplayBuffer,
    ReplayBuffer,
    RolloutBuffer,
)
from stable_baselines3.common.vec_env import DummyVecEnv, VecTransposeImage
from stacked_scenes import ACTIONS, bits, expect_same_arrays

from sb3_extra_buffers import frames
from sb3_extra_buffers.compressed import (
    CompressedDictReplayBuffer,
    CompressedDictRolloutBuffer,
    CompressedNStepReplayBuffer,
    CompressedReplayBuffer,
    CompressedRolloutBuffer,
)

#: 1080 pixels: enough for frames, and no multiple of what is taken apart at a time.
SIDES = (36, 30)
ROWS, STEPS = 20, 50
TIMEOUTS = {"optimize_memory_usage": True, "handle_timeout_termination": False}
REPLAY = {
    "plain": (CompressedReplayBuffer, ReplayBuffer, {}),
    "one array": (CompressedReplayBuffer, ReplayBuffer, TIMEOUTS),
    "n-step": (CompressedNStepReplayBuffer, NStepReplayBuffer, {"n_steps": 3}),
    "dict": (CompressedDictReplayBuffer, DictReplayBuffer, {}),
}
ROLLOUT = {
    "plain": (CompressedRolloutBuffer, RolloutBuffer, {}),
    "dict": (CompressedDictRolloutBuffer, DictRolloutBuffer, {}),
}


def _turned(obs):
    """As ``VecTransposeImage`` does it: channels last in memory, first in the shape."""
    return np.ascontiguousarray(obs.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)


def _frozen(obs):
    view = _turned(obs)
    view.flags.writeable = False
    return view


ORDERS = [
    _turned,
    lambda obs: copy.deepcopy(_turned(obs)),
    _frozen,
    lambda obs: _turned(obs[:, ::-1])[:, ::-1],
    lambda obs: np.ascontiguousarray(obs[:, :, ::-1, ::-1])[:, :, ::-1, ::-1],
    lambda obs: np.repeat(obs, 2, axis=3)[..., ::2],
    np.asfortranarray,
    np.ascontiguousarray,
]


def _stacks(depth, n_envs, dtype):
    """Stacks that shift, of which each begins anew now and then, and one stands still."""
    rng = np.random.default_rng(depth)
    scene = rng.integers(0, 256, (n_envs, *SIDES)).astype(dtype)
    stack = np.zeros((n_envs, depth, *SIDES), dtype)
    for step in range(STEPS + 1):
        scene[:, step % SIDES[0], :4] = rng.integers(0, 256, (n_envs, 4))
        for env in range(n_envs):
            if (step + env) % 9 == 0:
                stack[env] = 0
            if step % 7:
                stack[env] = np.concatenate([stack[env, 1:], scene[env : env + 1]])
        yield stack.copy()


def _make(kinds, kind, depth, n_envs, dtype, rows, **storage):
    ours, theirs, both = kinds[kind]
    space = spaces.Box(0, 255, (depth, *SIDES), dtype)
    if kind == "dict":
        space = spaces.Dict(image=space, number=spaces.Box(-1, 99, (2,), np.float32))
    return [
        part(rows, space, ACTIONS, device="cpu", n_envs=n_envs, **both, **more)
        for part, more in ((ours, storage), (theirs, {}))
    ]


def _hand_over(buffer, images, number, *rest):
    """Add, and then write over the memory of what was given, as environments that use their arrays again do."""
    images = [ORDERS[(number + index) % len(ORDERS)](image.copy()) for index, image in enumerate(images)]
    n_envs = len(images[0])
    given = images
    if isinstance(buffer, (DictReplayBuffer, DictRolloutBuffer)):
        given = [{"image": image, "number": np.full((n_envs, 2), number, np.float32)} for image in images]
    buffer.add(*given, *rest)
    for image in images:
        while image.base is not None:
            image = image.base
        image[...] = 85


def _fill(buffers, depth, n_envs, dtype):
    for number, images in enumerate(pairwise(_stacks(depth, n_envs, dtype))):
        done = np.array([(number + 1 + env) % 9 == 0 for env in range(n_envs)])
        action, reward = np.full((n_envs, 1), number % 3), np.arange(n_envs, dtype=np.float32) + number
        for buffer in buffers:
            _hand_over(buffer, images, number, action, reward, done, [{} for _ in range(n_envs)])


def _expect_same(ours, theirs):
    assert np.asarray(_images(theirs)).any()
    expect_same_arrays(ours, theirs)
    assert _samples(ours) == _samples(theirs)


def _samples(buffer):
    np.random.seed(0)
    return [bits(buffer.sample(30)) for _ in range(3)]


def _images(buffer):
    return buffer.observations["image"] if isinstance(buffer.observations, dict) else buffer.observations


@pytest.mark.parametrize("kind", REPLAY)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("n_envs", [1, 3, 8])
@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5])
def test_replay_buffers(kind, dtype, n_envs, depth):
    ours, theirs = _make(REPLAY, kind, depth, n_envs, dtype, ROWS * n_envs)
    _fill([ours, theirs], depth, n_envs, dtype)
    _expect_same(ours, theirs)


@pytest.mark.parametrize("storage", [{"layout": "cells"}, {"prefetch": True}, {"compression_method": "none"}], ids=str)
@pytest.mark.parametrize("n_envs", [1, 3])
def test_however_they_are_stored(storage, n_envs):
    ours, theirs = _make(REPLAY, "plain", 4, n_envs, np.uint8, ROWS * n_envs, **storage)
    _fill([ours, theirs], 4, n_envs, np.uint8)
    _expect_same(ours, theirs)


def test_kernels_that_leave_it_to_numpy_store_the_same(monkeypatch):
    reference = frames.create("numpy")
    assert not hasattr(reference, "contiguous")
    monkeypatch.setattr(frames, "create", lambda: reference)
    ours, theirs = _make(REPLAY, "plain", 4, 2, np.uint8, ROWS * 2)
    _fill([ours, theirs], 4, 2, np.uint8)
    assert "numpy" in ours.memory_report().keys[0].codec
    _expect_same(ours, theirs)


@pytest.mark.parametrize("kind", ROLLOUT)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("n_envs", [1, 3, 8])
@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5])
def test_rollout_buffers(kind, dtype, n_envs, depth):
    pair = _make(ROLLOUT, kind, depth, n_envs, dtype, STEPS)
    found = []
    for buffer in pair:
        for number, (obs, _) in enumerate(pairwise(_stacks(depth, n_envs, dtype))):
            row = np.full(n_envs, number % 3)
            values = th.arange(n_envs) * 1.0
            _hand_over(buffer, [obs], number, row[:, np.newaxis], row * 0.5, row == 0, values, values)
        assert np.asarray(_images(buffer)).any()
        buffer.compute_returns_and_advantage(th.zeros(n_envs), np.zeros(n_envs))
        np.random.seed(0)
        found.append([bits(batch) for batch in buffer.get(32)])
    assert found[0] == found[1]


def test_a_single_environment_needs_no_axis_of_its_own():
    ours, theirs = _make(REPLAY, "plain", 4, 1, np.uint8, ROWS)
    for number, (obs, next_obs) in enumerate(pairwise(_stacks(4, 1, np.uint8))):
        rest = np.array([[number % 3]]), np.array([1.0]), np.array([False]), [{}]
        ours.add(_turned(obs)[0], _turned(next_obs)[0], *rest)
        theirs.add(obs, next_obs, *rest)
    _expect_same(ours, theirs)


class _Screen(gym.Env):
    observation_space, action_space = spaces.Box(0, 255, (*SIDES, 4), np.uint8), ACTIONS

    def reset(self, *, seed=None, options=None):
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 0.0, False, False, {}


@pytest.mark.parametrize("n_envs", [1, 3])
def test_this_is_what_the_wrapper_of_stable_baselines3_hands_over(n_envs):
    env = VecTransposeImage(DummyVecEnv([_Screen] * n_envs))
    for obs in (env.reset(), copy.deepcopy(env.step(np.zeros(n_envs, np.int64))[0])):
        assert obs.shape == (n_envs, 4, *SIDES)
        assert not obs.flags.c_contiguous
        assert obs.transpose(0, 2, 3, 1).flags.c_contiguous
