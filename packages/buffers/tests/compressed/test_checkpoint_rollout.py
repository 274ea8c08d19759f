"""Rollout buffers that were saved and loaded: in the middle of a rollout, complete, and between two batches."""

import copy

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from sb3_contrib.common.recurrent.type_aliases import RNNStates

from sb3_extra_buffers.compressed import (
    CompressedDictRolloutBuffer,
    CompressedMaskableDictRolloutBuffer,
    CompressedMaskableRolloutBuffer,
    CompressedRecurrentDictRolloutBuffer,
    CompressedRecurrentRolloutBuffer,
    CompressedRolloutBuffer,
)

pytestmark = pytest.mark.usefixtures("no_waiting")
ROWS, N_ENVS, LAYERS, HIDDEN = 9, 2, 2, 5
ACTIONS = spaces.Discrete(5)
KINDS = {
    "plain": CompressedRolloutBuffer,
    "dict": CompressedDictRolloutBuffer,
    "maskable": CompressedMaskableRolloutBuffer,
    "maskable dict": CompressedMaskableDictRolloutBuffer,
    "recurrent": CompressedRecurrentRolloutBuffer,
    "recurrent dict": CompressedRecurrentDictRolloutBuffer,
}


@pytest.fixture
def make(screen, composite):
    def make(kind, **storage):
        options = {"device": "cpu", "gae_lambda": 0.9, "gamma": 0.95, "n_envs": N_ENVS, **storage}
        if "recurrent" in kind:
            options["hidden_state_shape"] = (ROWS, LAYERS, N_ENVS, HIDDEN)
        return KINDS[kind](ROWS, composite(32) if "dict" in kind else screen(32), ACTIONS, **options)

    return make


@pytest.fixture
def rollout(walk):
    """The arguments of add(), step by step."""

    def rollout(kind, space, seed=0):
        rng, starts = np.random.default_rng(seed), np.ones(N_ENVS, bool)
        for obs, _, action, reward, done, _ in walk(space, ACTIONS, N_ENVS, ROWS, seed):
            more = {"action_masks": rng.random((N_ENVS, 5)) < 0.5} if "maskable" in kind else {}
            if "recurrent" in kind:
                states = th.as_tensor(rng.normal(size=(4, LAYERS, N_ENVS, HIDDEN)), dtype=th.float32)
                more["lstm_states"] = RNNStates((states[0], states[1]), (states[2], states[3]))
            estimates = [th.as_tensor(rng.normal(size=N_ENVS), dtype=th.float32) for _ in range(2)]
            yield [obs, action, reward, starts, *estimates], more
            starts = done

    return rollout


def batches(buffer, seed):
    np.random.seed(seed)
    return [copy.deepcopy(batch) for batch in buffer.get(4)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("storage", [{}, {"compression_method": "gzip", "layout": "cells"}, {"heap": "mmap"}], ids=str)
def test_a_rollout_goes_on_at_every_stage(kind, storage, tmp_path, make, rollout, same):
    ours, twin = make(kind, **storage), make(kind, **storage)
    path = tmp_path / "checkpoint"

    def again(buffer):
        buffer.save(path)
        return KINDS[kind].load(path, "cpu", verify=True)

    for lap in range(3):
        for number, (step, more) in enumerate(rollout(kind, ours.observation_space, lap)):
            for buffer in (ours, twin):
                buffer.add(*copy.deepcopy(step), **more)
            if number in (0, 5):
                twin = again(twin)
        for buffer in (ours, twin):
            buffer.compute_returns_and_advantage(th.zeros(N_ENVS), np.zeros(N_ENVS))
        twin = again(twin)
        same(batches(twin, lap), batches(ours, lap))
        twin = again(twin)  # now environments lie one behind the other
        assert twin.generator_ready
        same(batches(twin, lap + 10), batches(ours, lap + 10))
        for buffer in (ours, twin):
            buffer.reset()


def test_batches_are_read_ahead_after_loading(tmp_path, make, rollout, same):
    ours, plain = make("plain", prefetch=True), make("plain")
    for step, _ in rollout("plain", ours.observation_space):
        for buffer in (ours, plain):
            buffer.add(*copy.deepcopy(step))
    ours.save(tmp_path / "checkpoint")
    loaded = CompressedRolloutBuffer.load(tmp_path / "checkpoint", "cpu")
    assert loaded._storage.worker is not None
    same(batches(loaded, 1), batches(plain, 1))
