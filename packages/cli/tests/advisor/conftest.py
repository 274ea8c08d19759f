"""Streams that are made in a moment: a dot that wanders over a screen, noise, and small vectors."""

import numpy as np
import pytest
from gymnasium import spaces

from sb3_extra_buffers.advisor import Stream
from sb3_extra_buffers.training_utils.steps import Step


def make_stream(observations, space, episode=40, n_envs=1):
    """Transitions between observations of shape ``(steps + 1, n_envs, …)``."""
    steps = []
    for number in range(len(observations) - 1):
        action, reward = np.full((n_envs, 1), number % 3), np.full(n_envs, number, np.float32)
        done = np.full(n_envs, number % episode == episode - 1)
        steps.append(Step(observations[number], observations[number + 1], action, action, reward, done, [{}] * n_envs))
    return Stream("made up", space, spaces.Discrete(3), n_envs, steps)


@pytest.fixture
def wandering():
    """A dot on a screen, stacks of four frames: what compresses best."""
    random = np.random.default_rng(1)
    screens = np.zeros((204, 36, 36), np.uint8)
    for number, screen in enumerate(screens):
        screen[:] = 60
        screen[number % 30 : number % 30 + 4, random.integers(30)] = 255
    stacked = np.stack([screens[place : place + 4] for place in range(200)])[:, np.newaxis]
    return make_stream(stacked, spaces.Box(0, 255, (4, 36, 36), np.uint8))


@pytest.fixture
def noise():
    """What no codec makes smaller."""
    rows = np.random.default_rng(2).integers(0, 256, (200, 1, 3, 36, 36), dtype=np.uint8)
    return make_stream(rows, spaces.Box(0, 255, (3, 36, 36), np.uint8))


@pytest.fixture
def vectors():
    """Four floats."""
    rows = np.random.default_rng(3).normal(size=(200, 2, 4)).astype(np.float32)
    return make_stream(rows, spaces.Box(-np.inf, np.inf, (4,), np.float32), n_envs=2)
