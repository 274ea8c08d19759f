"""A rollout whose batches are read ahead: the same as that of the original, whatever happens between two batches."""

import copy
import threading

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from sb3_contrib.common.maskable.buffers import MaskableDictRolloutBuffer, MaskableRolloutBuffer
from stable_baselines3.common.buffers import DictRolloutBuffer, RolloutBuffer

from sb3_extra_buffers.compressed import (
    CompressedDictRolloutBuffer,
    CompressedMaskableDictRolloutBuffer,
    CompressedMaskableRolloutBuffer,
    CompressedRolloutBuffer,
)

ROWS, N_ENVS = 9, 3
ACTIONS = spaces.Discrete(5)

#: Their class, and ours.
KINDS = {
    "plain": (RolloutBuffer, CompressedRolloutBuffer),
    "dict": (DictRolloutBuffer, CompressedDictRolloutBuffer),
    "maskable": (MaskableRolloutBuffer, CompressedMaskableRolloutBuffer),
    "maskable dict": (MaskableDictRolloutBuffer, CompressedMaskableDictRolloutBuffer),
}
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def pair(screen, composite):
    def pair(kind, side=12, **storage):
        theirs, ours = KINDS[kind]
        space = composite(side) if "dict" in kind else screen(side)
        both = {"device": "cpu", "gae_lambda": 0.9, "gamma": 0.95, "n_envs": N_ENVS}
        return ours(ROWS, space, ACTIONS, prefetch=True, **both, **storage), theirs(ROWS, space, ACTIONS, **both)

    return pair


@pytest.fixture
def collect(walk, scribble):
    """Fill the buffers with a rollout."""

    def collect(*buffers, seed=0):
        rng = np.random.default_rng(seed)
        for obs, _, action, reward, done, _ in walk(buffers[0].observation_space, ACTIONS, N_ENVS, ROWS, seed):
            estimates = th.as_tensor(rng.normal(size=(2, N_ENVS)), dtype=th.float32)
            masks = {"action_masks": rng.random((N_ENVS, 5)) < 0.5} if hasattr(buffers[0], "action_masks") else {}
            for buffer in buffers:
                given = copy.deepcopy([obs, action, reward, done])
                buffer.add(*given, *estimates, **masks)
                scribble(given)
        for buffer in buffers:
            buffer.compute_returns_and_advantage(th.arange(N_ENVS, dtype=th.float32), np.zeros(N_ENVS))

    return collect


def batches(buffer, batch_size=4, seed=0):
    np.random.seed(seed)
    return list(buffer.get(batch_size))


def replace_observations(buffer, value):
    """Assign by hand, as one may between two batches."""
    arrays = buffer.observations if isinstance(buffer.observations, dict) else {"": buffer.observations}
    for array in arrays.values():
        array[...] = np.full(array.shape, value, array.dtype)


class BrokenError(Exception):
    pass


@EVERY_KIND
@pytest.mark.parametrize(("side", "layout"), [(12, "cells"), (32, "cells"), (32, "frames")])
def test_batches_are_those_of_the_original_in_every_epoch_and_rollout(
    kind, side, layout, codec, pair, collect, same, scribble
):
    ours, theirs = pair(kind, side, compression_method=codec, layout=layout)
    for rollout in range(2):
        collect(ours, theirs, seed=rollout)
        for epoch, batch_size in enumerate([None, 7, 1, 64]):
            found = [batches(buffer, batch_size, epoch) for buffer in (ours, theirs)]
            same(*found)
            scribble(found)
        ours.reset()
        theirs.reset()


@EVERY_KIND
def test_random_numbers_are_drawn_where_the_original_draws_them(kind, pair, collect, same, scribble):
    ours, theirs = pair(kind)
    collect(ours, theirs)
    found = []
    for buffer in (ours, theirs):
        np.random.seed(1)
        passing = buffer.get(5)
        numbers = [np.random.random()]
        for batch in passing:
            numbers += [copy.deepcopy(batch), np.random.random()]
            scribble(batch)  # who got it may, while the next one is read
        found.append(numbers)
    same(*found)


@EVERY_KIND
def test_passes_that_take_turns_do_not_disturb_each_other(kind, pair, collect, same):
    ours, theirs = pair(kind)
    collect(ours, theirs)
    found = []
    for buffer in (ours, theirs):
        np.random.seed(2)
        found.append(list(zip(buffer.get(4), buffer.get(4))))
    same(*found)


@EVERY_KIND
def test_a_pass_that_is_given_up_leaves_nothing_behind(kind, pair, collect, same):
    ours, theirs = pair(kind)
    for rollout in range(3):
        collect(ours, theirs, seed=rollout)
        for number in range(3):
            same(*(next(buffer.get(4 + number)) for buffer in (ours, theirs) if not np.random.seed(number)))
        open_passes = [ours.get(4), ours.get(5)]
        for passing in open_passes:
            next(passing)
        open_passes[0].close()
        same(batches(ours), batches(theirs))
        ours.reset()
        theirs.reset()


@EVERY_KIND
def test_what_is_assigned_between_two_batches_is_in_the_next_one(kind, pair, collect, same):
    ours, theirs = pair(kind)
    collect(ours, theirs)
    found = []
    for buffer in (ours, theirs):
        np.random.seed(3)
        passing = buffer.get(5)
        first = next(passing)
        replace_observations(buffer, 1)
        buffer.advantages += 1
        found.append([first, *passing])
    same(*found)


def test_a_pass_over_a_rollout_that_was_reset_reads_what_is_there_now(pair, collect, same):
    ours, theirs = pair("plain")
    plain = CompressedRolloutBuffer(ROWS, ours.observation_space, ACTIONS, "cpu", 0.9, 0.95, N_ENVS)
    found = []
    for buffer in (ours, plain):
        collect(buffer)
        np.random.seed(0)
        passing = buffer.get(4)
        next(passing)
        buffer.reset()
        with pytest.raises(IndexError) as error:  # arrays have another form now, also in the original
            list(passing)
        found.append(str(error.value))
    assert found[0] == found[1]
    collect(ours, theirs, seed=1)
    same(batches(ours), batches(theirs))


def test_a_step_that_is_added_between_two_batches_is_refused_as_ever(pair, collect, same):
    ours, theirs = pair("plain")
    collect(ours, theirs)
    np.random.seed(0)
    passing = ours.get(4)
    found = [next(passing)]
    step = np.zeros((N_ENVS, *ours.obs_shape), np.uint8), np.zeros((N_ENVS, 1)), np.zeros(N_ENVS), np.zeros(N_ENVS)
    with pytest.raises(ValueError, match="the rollout is complete"):
        ours.add(*step, th.zeros(N_ENVS), th.zeros(N_ENVS))
    same([*found, *passing], batches(theirs))


@EVERY_KIND
def test_an_error_of_the_worker_is_raised_at_the_batch_that_it_belongs_to(kind, pair, collect, same, monkeypatch):
    ours, theirs = pair(kind)
    collect(ours, theirs)
    expected, reads = batches(theirs), []
    array = type(next(iter(ours._storage.observations.values())))
    read = array._read

    def fail_at_the_third(self, cells):
        reads.append(threading.current_thread())
        if len(reads) > 2 * len(ours._storage.observations):
            raise BrokenError
        return read(self, cells)

    monkeypatch.setattr(array, "_read", fail_at_the_third)
    np.random.seed(0)
    passing = ours.get(4)
    same([next(passing), next(passing)], expected[:2])
    with pytest.raises(BrokenError):
        next(passing)
    assert reads[-1] is not threading.main_thread()
    monkeypatch.undo()
    same(batches(ours), expected)


def test_methods_of_subclasses_make_the_batches(pair, collect, same):
    class Own(CompressedRolloutBuffer):
        def _get_samples(self, *args):
            samples, first = super()._get_samples(*args), self.observations[0]  # more than what was read ahead
            return samples._replace(returns=samples.returns + int(first.sum()) + self.observations.shape[0])

    ours, theirs = pair("plain")
    own = Own(ROWS, ours.observation_space, ACTIONS, "cpu", 0.9, 0.95, N_ENVS, prefetch=True)
    collect(own, theirs)
    found, expected = batches(own), batches(theirs)
    more = int(theirs.observations[0].sum()) + ROWS * N_ENVS
    same(found, [batch._replace(returns=batch.returns + more) for batch in expected])


def test_a_copy_goes_on_by_itself(pair, collect, same):
    ours, theirs = pair("plain")
    collect(ours, theirs)
    passing = ours.get(4)
    next(passing)
    twin = copy.deepcopy(ours)
    same(batches(twin), batches(theirs))
    twin.reset()
    collect(twin, seed=5)
    same(batches(ours), batches(theirs))
