"""The same steps for a buffer and for the one of Stable-Baselines3 beside it."""

import numpy as np
import pytest
import torch as th
from gpu_player import Player, expect_equal


@pytest.fixture
def play():
    """Add the same steps to several buffers."""

    def play(buffers, steps, seed=0):
        first = buffers[0]
        player = Player(first.observation_space, first.n_envs, seed)
        for _ in range(steps):
            step = player.step()
            for buffer in buffers:
                buffer.add(*step)

    return play


@pytest.fixture
def roll():
    """Add the same rollout to several buffers."""

    def roll(buffers, seed=0):
        first = buffers[0]
        player = Player(first.observation_space, first.n_envs, seed)
        for _ in range(first.buffer_size):
            step = player.rollout_step()
            for buffer in buffers:
                buffer.add(*step)
        for buffer in buffers:
            buffer.compute_returns_and_advantage(th.zeros(first.n_envs), np.zeros(first.n_envs))

    return roll


def random_state():
    """All numbers, and how many of them are used."""
    _, numbers, used, *_ = np.random.get_state()
    return numbers.tolist(), used


@pytest.fixture
def same_batches():
    """Draw from both with the same seed; what is drawn and what is left of the random numbers is the same."""

    def same_batches(buffer, expected, size=37, seed=5):
        np.random.seed(seed)
        theirs = expected.sample(size)
        state = random_state()
        np.random.seed(seed)
        expect_equal(buffer.sample(size), theirs)
        assert random_state() == state

    return same_batches


@pytest.fixture
def same_rollout():
    """Go through both rollouts in the same order."""

    def same_rollout(buffer, expected, size=13, seed=5):
        np.random.seed(seed)
        theirs = list(expected.get(size))
        np.random.seed(seed)
        ours = list(buffer.get(size))
        assert len(ours) == len(theirs)
        for found, other in zip(ours, theirs):
            expect_equal(found, other)

    return same_rollout
