"""Rollout buffers beside those of Stable-Baselines3 and sb3-contrib: the same in, the same seed, the same out."""

import copy

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from sb3_contrib.common.maskable.buffers import MaskableDictRolloutBuffer, MaskableRolloutBuffer
from sb3_contrib.common.recurrent.buffers import RecurrentDictRolloutBuffer, RecurrentRolloutBuffer
from sb3_contrib.common.recurrent.type_aliases import RNNStates
from stable_baselines3.common.buffers import DictRolloutBuffer, RolloutBuffer

from sb3_extra_buffers.compressed import (
    CompressedDictRolloutBuffer,
    CompressedMaskableDictRolloutBuffer,
    CompressedMaskableRolloutBuffer,
    CompressedRecurrentDictRolloutBuffer,
    CompressedRecurrentRolloutBuffer,
    CompressedRolloutBuffer,
)

ROWS = 9
LAYERS, HIDDEN = 2, 5
BOX, DISCRETE, SEVERAL = spaces.Box(-2, 2, (2,), np.float32), spaces.Discrete(5), spaces.MultiDiscrete([2, 3])

#: Their class, ours, action space.
KINDS = {
    "plain": (RolloutBuffer, CompressedRolloutBuffer, BOX),
    "dict": (DictRolloutBuffer, CompressedDictRolloutBuffer, DISCRETE),
    "maskable": (MaskableRolloutBuffer, CompressedMaskableRolloutBuffer, DISCRETE),
    "maskable dict": (MaskableDictRolloutBuffer, CompressedMaskableDictRolloutBuffer, SEVERAL),
    "recurrent": (RecurrentRolloutBuffer, CompressedRecurrentRolloutBuffer, BOX),
    "recurrent dict": (RecurrentDictRolloutBuffer, CompressedRecurrentDictRolloutBuffer, DISCRETE),
}
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def pair(screen, composite):
    def pair(kind, n_envs, side=12, **storage):
        theirs, ours, actions = KINDS[kind]
        space = composite(side) if "dict" in kind else screen(side)
        both = {"device": "cpu", "gae_lambda": 0.9, "gamma": 0.95, "n_envs": n_envs}
        if "recurrent" in kind:
            both["hidden_state_shape"] = (ROWS, LAYERS, n_envs, HIDDEN)
        return ours(ROWS, space, actions, **both, **storage), theirs(ROWS, space, actions, **both)

    return pair


@pytest.fixture
def collect(walk, scribble, same):
    """Fill the buffers with a rollout, as algorithms do."""

    def collect(kind, buffers, seed=0):
        rng, n_envs = np.random.default_rng(seed), buffers[0].n_envs
        starts = np.ones(n_envs, bool)
        for obs, _, action, reward, done, _ in walk(buffers[0].observation_space, KINDS[kind][2], n_envs, ROWS, seed):
            value, log_prob = (
                th.as_tensor(rng.normal(size=shape), dtype=th.float32) for shape in [(n_envs, 1), n_envs]
            )
            more = {}
            if "maskable" in kind:
                more["action_masks"] = rng.random((n_envs, 5)) < 0.5
            if "recurrent" in kind:
                states = th.as_tensor(rng.normal(size=(4, LAYERS, n_envs, HIDDEN)), dtype=th.float32)
                more["lstm_states"] = RNNStates((states[0], states[1]), (states[2], states[3]))
            for buffer in buffers:
                given = copy.deepcopy([obs, action, reward, starts, value, log_prob])
                buffer.add(*given, **more)
                scribble(given)
            starts = done
        for buffer in buffers:
            buffer.compute_returns_and_advantage(th.arange(n_envs, dtype=th.float32), starts)

    return collect


@pytest.fixture
def same_epochs(same, scribble):
    """Check that several passes return the same for the same seed, and that what they return is nobody else's."""

    def check(ours, theirs):
        for epoch, batch_size in enumerate([None, 7, 64]):
            found = []
            for buffer in (ours, theirs):
                np.random.seed(epoch)
                found.append(list(buffer.get(batch_size) if batch_size else buffer.get()))
            same(*found)
            scribble(found)

    return check


def stored(buffer):
    if isinstance(buffer.observations, dict):
        return {key: np.asarray(array) for key, array in buffer.observations.items()}
    return np.asarray(buffer.observations)


@EVERY_KIND
@pytest.mark.parametrize(("n_envs", "side"), [(1, 12), (3, 12), (8, 12), (3, 32)])
def test_batches_are_those_of_the_original_in_every_epoch_and_rollout(
    kind, n_envs, side, codec, pair, collect, same_epochs
):
    ours, theirs = pair(kind, n_envs, side, compression_method=codec)
    assert isinstance(ours, type(theirs))
    for rollout in range(2):
        collect(kind, [ours, theirs], seed=rollout)
        same_epochs(ours, theirs)
        ours.reset()
        theirs.reset()


@EVERY_KIND
@pytest.mark.parametrize("heap", ["ring", "mmap"])
def test_a_heap_with_room_enough_changes_nothing(kind, heap, codec, pair, collect, same_epochs, tmp_path):
    place = {"capacity": 1 << 20} if heap == "ring" else {"folder": str(tmp_path)}
    ours, theirs = pair(kind, 3, compression_method=codec, heap=heap, heap_kwargs=place)
    for rollout in range(2):
        collect(kind, [ours, theirs], seed=rollout)
        same_epochs(ours, theirs)
        ours.reset()
        theirs.reset()


@EVERY_KIND
@pytest.mark.parametrize("side", [12, 32])
def test_arrays_hold_what_those_of_the_original_hold(kind, side, codec, pair, collect, same):
    ours, theirs = pair(kind, 3, side, compression_method=codec)
    for rollout in range(2):
        same(stored(ours), stored(theirs))  # zeros
        collect(kind, [ours, theirs], seed=rollout)
        same(stored(ours), stored(theirs))
        next(ours.get(4))
        next(theirs.get(4))
        same(stored(ours), stored(theirs))  # one environment after the other
        for name in ("actions", "values", "log_probs", "advantages", "returns", "rewards", "episode_starts"):
            same(getattr(ours, name), getattr(theirs, name), name)
        ours.reset()
        theirs.reset()


def test_a_rollout_that_is_given_up_half_way_leaves_nothing(codec, pair, walk, collect, same, same_epochs):
    ours, theirs = pair("plain", 3, compression_method=codec)
    for obs, _, action, reward, done, _ in walk(ours.observation_space, BOX, 3, ROWS // 2, seed=7):
        ours.add(obs, action, reward, done, th.zeros(3), th.zeros(3))
    ours.reset()
    same(stored(ours), stored(theirs))
    collect("plain", [ours, theirs])
    same_epochs(ours, theirs)
