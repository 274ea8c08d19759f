"""Which episodes count, and what they returned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv, VecMonitor, is_vecenv_wrapped


def process_outcome(infos: Sequence[dict[str, Any]]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The returns of the episodes that ``Monitor`` says are over, NaN for all others, and which these are.

    :param infos: of one step, for each environment
    """
    scores = np.array([info["episode"]["r"] if "episode" in info else np.nan for info in infos], np.float64)
    return scores, np.array(["episode" in info for info in infos], np.bool_)


class EpisodeCounter:
    """Counts episodes until there are enough, each environment its own share.

    Taking the first that end would prefer short episodes.

    :param env: where they are played
    :param n_eps: how many are wanted; the first environments get one more if they cannot be shared evenly
    """

    def __init__(self, env: VecEnv, n_eps: int) -> None:
        share, rest = divmod(n_eps, env.num_envs)
        self._left = share + (np.arange(env.num_envs) < rest)
        monitored = is_vecenv_wrapped(env, VecMonitor) or env.env_is_wrapped(Monitor)
        self._is_monitored = np.broadcast_to(np.asarray(monitored, np.bool_), env.num_envs)
        self._returns = np.zeros(env.num_envs)
        #: What the counted episodes returned, in the order in which they ended.
        self.scores: list[float] = []

    @property
    def counting(self) -> NDArray[np.bool_]:
        """Which environments still play episodes that count."""
        counting: NDArray[np.bool_] = self._left > 0
        return counting

    def take(self, rewards: NDArray[Any], dones: NDArray[Any], infos: Sequence[dict[str, Any]]) -> int:
        """
        One step of all environments.

        ``Monitor`` knows better: below wrappers that clip rewards or end an episode with each life, it counts games.

        :return: how many episodes that count are over with it
        """
        self._returns += rewards
        told, is_told = process_outcome(infos)
        dones = np.asarray(dones, np.bool_)
        counted = dones & self.counting & (is_told | ~self._is_monitored)
        self.scores += np.where(self._is_monitored, told, self._returns)[counted].tolist()
        self._left[counted] -= 1
        self._returns[dones] = 0
        return int(counted.sum())
