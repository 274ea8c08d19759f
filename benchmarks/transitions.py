"""What environments hand to a buffer, made of the observations of a game that was played before."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from benchmarks.atari import SCREEN, STACK

OBSERVATION_SPACE = spaces.Box(0, 255, (STACK, SCREEN, SCREEN), np.uint8)
ACTION_SPACE = spaces.Discrete(9)


class Step(NamedTuple):
    """The arguments of ``ReplayBuffer.add``: one row for each environment."""

    obs: NDArray[np.uint8]
    next_obs: NDArray[np.uint8]
    action: NDArray[np.int64]
    reward: NDArray[np.float32]
    done: NDArray[np.bool_]
    infos: list[dict[str, Any]]

    def turned(self) -> Step:
        """The same step as training hands it over: ``VecTransposeImage`` makes views of images, channels last."""
        return self._replace(obs=_turned(self.obs), next_obs=_turned(self.next_obs))


def _turned(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(images.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)


class Transitions:
    """Several environments that replay one game from different places, over and over.

    ``next_obs`` is the ``obs`` of the following step, except where an episode ends, but never the same array: each step
    brings new ones, as ``collect_rollouts`` of Stable-Baselines3 does.

    :param observations: shape ``(n, 4, 84, 84)``, in the order in which they were seen
    :param n_envs: how many environments
    """

    def __init__(self, observations: NDArray[np.uint8], n_envs: int) -> None:
        # Right after a reset, older frames of the stack are zero.
        first = np.array([not observation[:-1].any() for observation in observations])
        self._observations = observations
        self._cells = np.flatnonzero(~first[1:])
        self._is_last = np.append(first, True)[self._cells + 2]
        self._at = np.arange(n_envs) * len(self._cells) // n_envs
        self._random = np.random.default_rng(0)

    def twin(self) -> Transitions:
        """Another one, that goes on from here with the same steps."""
        twin = copy.copy(self)
        twin._random = copy.deepcopy(self._random)
        return twin

    def step(self) -> Step:
        """What all environments do next."""
        cells, done, n_envs = self._cells[self._at], self._is_last[self._at], len(self._at)
        self._at = (self._at + 1) % len(self._cells)
        # What was recorded ends in the middle of an episode; there, as at every other end, the next one follows.
        done = done | (self._at == 0)
        action, reward = self._random.integers(9, size=n_envs), self._random.random(n_envs, np.float32)
        observations = self._observations
        return Step(observations[cells], observations[cells + 1], action, reward, done, [{} for _ in range(n_envs)])
