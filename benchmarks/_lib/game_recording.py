"""Transitions of environments, recorded in files, so that every buffer is given the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from benchmarks._lib.atari import Step

_STEPS_PER_REPORT = 16
_LAST_WRITTEN = "steps.npz"

#: Chooses actions for the observations of all environments.
Player = Callable[[NDArray[np.uint8]], NDArray[np.int64]]


def record(folder: str, env: VecEnv, steps: int, player: Player, progress: Callable[[int], None] | None = None) -> None:
    """Play, and write everything that a replay buffer is given to files.

    :param folder: folder of the files
    :param env: the environments; they are reset first
    :param steps: number of steps
    :param player: chooses the actions
    :param progress: called now and then with the number of steps so far
    """
    shape = (steps + 1, env.num_envs, *(env.observation_space.shape or ()))
    observations = np.lib.format.open_memmap(Path(folder, "observations.npy"), "w+", np.uint8, shape)
    actions, rewards, dones = (np.zeros((steps, env.num_envs), kind) for kind in (np.int64, np.float32, np.bool_))
    truncated, ends = np.zeros_like(dones), []
    observations[0] = env.reset()
    for step in range(steps):
        actions[step] = player(observations[step])
        observations[step + 1], rewards[step], dones[step], infos = env.step(actions[step])
        for index in np.flatnonzero(dones[step]):
            truncated[step, index] = infos[index].get("TimeLimit.truncated", False)
            ends.append(infos[index]["terminal_observation"])
        if progress is not None and (step + 1) % _STEPS_PER_REPORT == 0:
            progress(step + 1)
    observations.flush()
    last = np.array(ends, np.uint8).reshape(-1, *shape[2:])
    np.savez(Path(folder, _LAST_WRITTEN), actions=actions, rewards=rewards, dones=dones, truncated=truncated, last=last)


def is_recorded(folder: str) -> bool:
    """Whether a folder has a complete recording.

    :param folder: the folder
    """
    return Path(folder, _LAST_WRITTEN).is_file()


class Recording:
    """A recording, step by step.

    Observations are mapped, not loaded, so that they do not count as memory of the process.

    :param folder: has the files of :func:`record`
    """

    def __init__(self, folder: str) -> None:
        #: Shape ``(steps + 1, environments, …)``.
        self.observations: NDArray[np.uint8] = np.load(Path(folder, "observations.npy"), mmap_mode="r")
        with np.load(Path(folder, _LAST_WRITTEN)) as file:
            self._actions, self._rewards, self._dones = file["actions"], file["rewards"], file["dones"]
            self._truncated, self._last = file["truncated"], file["last"]
        # Index of the last observation of an episode.
        self._end = np.cumsum(self._dones).reshape(self._dones.shape) - 1
        self.steps, self.n_envs = self._dones.shape

    @property
    def spaces(self) -> tuple[spaces.Box, spaces.Discrete]:
        """Spaces of the observations and of the recorded actions."""
        return spaces.Box(0, 255, self.observations.shape[2:], np.uint8), spaces.Discrete(int(self._actions.max()) + 1)

    def step(self, number: int) -> Step:
        """A step in new arrays, as ``collect_rollouts`` of Stable-Baselines3 passes it.

        :param number: number of the step, from 0
        """
        envs = np.arange(self.n_envs)
        infos: list[dict[str, Any]] = [{"TimeLimit.truncated": bool(cut)} for cut in self._truncated[number]]
        obs, next_obs = np.array(self.observations[number]), self.next_observations(np.full(self.n_envs, number), envs)
        return Step(obs, next_obs, self._actions[number], self._rewards[number], self._dones[number], infos)

    def next_observations(self, steps: NDArray[np.int64], envs: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Next observations, before any reset.

        :param steps: numbers of the steps
        :param envs: environment of each step
        """
        following = np.array(self.observations[steps + 1, envs])
        done = self._dones[steps, envs]
        following[done] = self._last[self._end[steps[done], envs[done]]]
        return following
