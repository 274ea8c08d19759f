"""Evaluate a model, and fill buffers with its experience."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.type_aliases import PolicyPredictor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecMonitor, is_vecenv_wrapped

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.progress import progress_bar
from sb3_extra_buffers.training_utils.feeds import RENDER, RecordLike, ReplayLike, TimedBuffer, as_list, open_feeds
from sb3_extra_buffers.training_utils.steps import Player

__all__ = ["RENDER", "eval_model", "process_outcome"]


def eval_model(
    n_eps: int,
    eval_env: VecEnv | gymnasium.Env[Any, Any],
    model: PolicyPredictor,
    close_env: bool = True,
    buffer: ReplayLike | RecordLike | Iterable[ReplayLike | RecordLike] | None = None,
    *,
    deterministic: bool = True,
    progress: bool = True,
    record_env: int = 0,
    record_frames: str | None = None,
) -> tuple[list[float], list[float]]:
    """Play episodes, and store the experience in any number of buffers.

    Each environment plays its share of the episodes, so that short ones are not preferred. With ``Monitor``, its
    returns and ends of episodes count: those of whole games, before rewards were clipped.

    A replay buffer gets the transitions that an off-policy algorithm of Stable-Baselines3 would store: with the true
    last observation of an episode, actions of a Box scaled to -1 to 1, and nothing normalized by ``VecNormalize``. If
    there are several times as many environments as the buffer is for, it gets whole episodes that count, one after the
    other for each of its environments; transitions that cannot complete a step at the end are left out. Otherwise it
    also gets the episodes of environments that have played their share. A record buffer gets the episodes of one
    environment that count. If it has one feature, that is whether the episode was truncated, as by a time limit.

    :param n_eps: number of episodes that count
    :param eval_env: where to play; it is reset first
    :param model: a model or a policy
    :param close_env: whether to close the environments at the end
    :param buffer: a replay buffer, a record buffer, or several of them
    :param deterministic: whether the model takes the best action, or draws one
    :param progress: whether to show a bar, if rich or tqdm is installed
    :param record_env: the number of the environment whose episodes are recorded; with fewer episodes than environments,
        the first of them play
    :param record_frames: what is recorded: the observation by default, with ``"render"`` what the environment renders,
        otherwise the key of Dict observations
    :return: the returns of the episodes, in the order in which they ended, and the seconds that each buffer has spent
        in ``add``
    """
    env = eval_env if isinstance(eval_env, VecEnv) else DummyVecEnv([lambda: eval_env])
    try:
        if n_eps < 1:
            raise ParameterError("eval_model", "n_eps", n_eps, "it must be at least 1")
        buffers = [TimedBuffer(one) for one in as_list(buffer)]
        player = Player(env, model, deterministic)
        counter = EpisodeCounter(env, n_eps)
        feeds = open_feeds(buffers, player, record_env, record_frames, counter.counting)
        with progress_bar("Episodes", n_eps, progress) as advance:
            while (counting := counter.counting).any():
                step = player.step()
                for feed in feeds:
                    feed(step, counting)
                advance(counter.take(step.rewards, step.dones, step.infos))
        for timed in buffers:
            timed.finish()
    finally:
        if close_env:
            env.close()
    return counter.scores, [timed.seconds for timed in buffers]


def process_outcome(infos: Sequence[dict[str, Any]]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The returns of the episodes that ended according to ``Monitor``, NaN for all others, and which these are.

    :param infos: of one step, for each environment
    """
    scores = np.array([info["episode"]["r"] if "episode" in info else np.nan for info in infos], np.float64)
    return scores, np.array(["episode" in info for info in infos], np.bool_)


class EpisodeCounter:
    """Counts episodes until there are enough, each environment its own share: the first to end would be short ones.

    The first environments play one more if the episodes cannot be shared evenly.
    """

    def __init__(self, env: VecEnv, n_eps: int) -> None:
        share, rest = divmod(n_eps, env.num_envs)
        self._left = share + (np.arange(env.num_envs) < rest)
        monitored = is_vecenv_wrapped(env, VecMonitor) or env.env_is_wrapped(Monitor)
        self._is_monitored = np.broadcast_to(np.asarray(monitored, np.bool_), env.num_envs)
        self._returns = np.zeros(env.num_envs)
        #: The returns of the counted episodes, in the order in which they ended.
        self.scores: list[float] = []

    @property
    def counting(self) -> NDArray[np.bool_]:
        """Which environments still play episodes that count."""
        return np.asarray(self._left > 0)

    def take(self, rewards: NDArray[Any], dones: NDArray[Any], infos: Sequence[dict[str, Any]]) -> int:
        """Count one step of all environments, and return how many counted episodes ended with it.

        ``Monitor`` takes precedence: below wrappers that clip rewards or end an episode with each life, it sees games.
        """
        self._returns += rewards
        scores, is_scored = process_outcome(infos)
        dones = np.asarray(dones, np.bool_)
        counted = dones & self.counting & (is_scored | ~self._is_monitored)
        self.scores += np.where(self._is_monitored, scores, self._returns)[counted].tolist()
        self._left[counted] -= 1
        self._returns[dones] = 0
        return int(counted.sum())
