"""Evaluate a model, and fill buffers with what it experiences."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import gymnasium
from stable_baselines3.common.type_aliases import PolicyPredictor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.progress import progress_bar
from sb3_extra_buffers.training_utils.episodes import EpisodeCounter, process_outcome
from sb3_extra_buffers.training_utils.feeding import RENDER, open_feeds
from sb3_extra_buffers.training_utils.feeds import Timed
from sb3_extra_buffers.training_utils.kinds import RecordLike, ReplayLike, as_list
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
    """
    Play episodes, and store what happens in any number of buffers.

    Each environment plays its share of the episodes, so that short ones are not preferred. With ``Monitor``, returns
    and ends of episodes are those that it tells: of whole games, with rewards as they were before they were clipped.

    A replay buffer gets transitions as an off-policy algorithm of Stable-Baselines3 would store them: the true last
    observation of an episode, actions of a Box between -1 and 1, nothing normalized by ``VecNormalize``. If there are
    several times as many environments as it has columns, each column gets whole episodes one after the other, and
    what cannot fill a row in the end is left out. Otherwise it also gets what environments play that are done with
    their share. A record buffer gets the episodes of one environment that count. If it has one feature, that is
    whether the episode was cut off, as by a time limit, and did not come to its end.

    :param n_eps: how many episodes count
    :param eval_env: where to play; it is reset first
    :param model: who plays: a model or a policy
    :param close_env: whether to close the environments when done
    :param buffer: what to fill: a replay buffer, a record buffer, or several of them
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
        buffers = [Timed(one) for one in as_list(buffer)]
        player = Player(env, model, deterministic)
        counter = EpisodeCounter(env, n_eps)
        feeds = open_feeds(buffers, env, player, record_env, record_frames, counter.counting)
        with progress_bar("Episodes", n_eps, progress) as advance:
            while (counting := counter.counting).any():
                step = player.step()
                for feed in feeds:
                    feed.take(step, counting)
                advance(counter.take(step.rewards, step.dones, step.infos))
        for feed in feeds:
            feed.finish()
    finally:
        if close_env:
            env.close()
    return counter.scores, [timed.seconds for timed in buffers]
