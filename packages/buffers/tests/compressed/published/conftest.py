"""What the tests of the published package's names and bugs share: steps in every environment, and what comes back."""

import numpy as np
import pytest
import torch as th
from gymnasium import spaces

from sb3_extra_buffers.compressed import CompressedReplayBuffer, CompressedRolloutBuffer


def _add(buffer, obs, next_obs=None):
    count = buffer.n_envs
    next_obs = obs if next_obs is None else next_obs
    if isinstance(buffer, CompressedRolloutBuffer):
        buffer.add(obs, np.zeros((count, 1)), np.zeros(count), np.zeros(count), th.zeros(count), th.zeros(count))
    else:
        buffer.add(obs, next_obs, np.zeros((count, 1)), np.zeros(count), np.zeros(count), [{}] * count)


@pytest.fixture
def add():
    """One step in every environment; Dict observations are dictionaries."""
    return _add


@pytest.fixture
def one_by_one():
    """What a buffer returns after these observations were added, each beside the one that followed it."""

    def one_by_one(space, values, codec="auto", **storage):
        buffer = CompressedReplayBuffer(len(values), space, spaces.Discrete(2), compression_method=codec, **storage)
        for obs, next_obs in zip(values, [*values[1:], values[0]]):
            _add(buffer, obs[np.newaxis], next_obs[np.newaxis])
        samples = buffer._get_samples(np.arange(len(values)))
        return samples.observations.numpy(), samples.next_observations.numpy()

    return one_by_one


@pytest.fixture
def expect_bits():
    """Check dtype, shape and every bit of an array."""

    def expect_bits(found, expected):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert found.tobytes() == expected.tobytes()

    return expect_bits
