"""Which feed each buffer gets."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.training_utils.feeds import ColumnFeed, Feed, RecordFeed, ReplayFeed, Timed
from sb3_extra_buffers.training_utils.kinds import Kind, kind_of
from sb3_extra_buffers.training_utils.steps import Player

#: Record what the environment renders, not what the model sees.
RENDER = "render"


def open_feeds(
    buffers: list[Timed],
    env: VecEnv,
    player: Player,
    record_env: int,
    record_frames: str | None,
    counting: NDArray[np.bool_],
) -> list[Feed]:
    """
    The feeds that fill these buffers. Buffers with the same number of columns share one: what waits, waits once.

    :param buffers: of any kinds
    :param env: where the player plays
    :param player: has not made a step yet
    :param record_env: the number of the environment that is recorded
    :param record_frames: what is recorded of it
    :param counting: which environments play episodes that count
    """
    feeds: list[Feed] = []
    columns: dict[int, list[Timed]] = {}
    for timed in buffers:
        if kind_of(timed.buffer) is Kind.REPLAY:
            columns.setdefault(timed.buffer.n_envs, []).append(timed)
        else:
            _check_stage(env, record_env, counting)
            feeds.append(RecordFeed(timed, record_env, _camera(env, player, record_env, record_frames)))
    for count, group in columns.items():
        if env.num_envs % count:
            allowed = f"the number of environments, {env.num_envs}, must be a multiple of it"
            raise ParameterError("eval_model", "buffer.n_envs", count, allowed)
        feeds.append(ReplayFeed(group) if count == env.num_envs else ColumnFeed(group, count, env.num_envs))
    return feeds


def _check_stage(env: VecEnv, number: int, counting: NDArray[np.bool_]) -> None:
    if not 0 <= number < env.num_envs:
        allowed = f"it must be the number of an environment, 0 to {env.num_envs - 1}"
        raise ParameterError("eval_model", "record_env", number, allowed)
    if not counting[number]:
        first = f"the first {int(counting.sum())} of {env.num_envs} environments"
        allowed = f"there would be nothing to record: only {first} have an episode to play"
        raise ParameterError("eval_model", "record_env", number, allowed, "Record one of these, or play more episodes.")


def _camera(env: VecEnv, player: Player, number: int, what: str | None) -> Callable[[], Any]:
    space = env.observation_space
    keys = list(space) if isinstance(space, spaces.Dict) else []
    if what == RENDER and what not in keys:
        return partial(_rendered, env, number)
    if what in keys if keys else what is None:
        return partial(_observed, player, number, what)
    allowed = f"it must be {RENDER!r}, or " + (f"a key of the observations: {keys}" if keys else "left out")
    raise ParameterError("eval_model", "record_frames", what, allowed)


def _observed(player: Player, number: int, key: str | None) -> Any:
    observations = player.observations
    return (observations if key is None else observations[key])[number]


def _rendered(env: VecEnv, number: int) -> Any:
    (frame,) = env.env_method("render", indices=[number])
    if not isinstance(frame, np.ndarray):
        allowed = "the environment must be made with render_mode='rgb_array'"
        raise ParameterError("eval_model", "record_frames", RENDER, allowed, f"It renders {type(frame).__name__}.")
    return frame
