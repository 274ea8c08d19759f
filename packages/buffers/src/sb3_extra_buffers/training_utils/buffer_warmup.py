"""Fill a replay buffer before training with the experience of a trained model."""

from __future__ import annotations

from typing import Any

from stable_baselines3.common.type_aliases import PolicyPredictor
from stable_baselines3.common.vec_env import VecEnv

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.training_utils.eval_model import eval_model
from sb3_extra_buffers.training_utils.feeds import as_list, is_replay

#: Fraction of a buffer that is filled if only the length of an episode is known.
_FILLED = 0.9


def warm_up(
    buffer: Any,
    n_envs: int,
    warmup_env: VecEnv,
    warmup_model: PolicyPredictor,
    warmup_episodes: int | None = None,
    mean_ep_len: float | None = None,
    *,
    deterministic: bool = True,
    progress: bool = True,
    record_env: int = 0,
    record_frames: str | None = None,
) -> tuple[list[float], list[float]]:
    """Play episodes and store them as :func:`~sb3_extra_buffers.training_utils.eval_model.eval_model` does, which also
    describes the arguments that are not described here. The environments stay open.

    :param buffer: a replay buffer, or several of the same size, and record buffers
    :param n_envs: the number of environments that the replay buffer is for
    :param warmup_env: where to play: ``n_envs`` environments, or a multiple
    :param warmup_model: a model or a policy
    :param warmup_episodes: number of episodes; if left out, enough to fill nine tenths of the first replay buffer, or
        of the first recording if there are only recordings
    :param mean_ep_len: the mean length of an episode; needed if ``warmup_episodes`` is left out
    :return: the returns of the episodes, and the seconds that each buffer has spent in ``add``
    """
    buffers = as_list(buffer)
    if not buffers:
        raise ParameterError("warm_up", "buffer", buffer, "it must be a replay buffer, or several buffers")
    if n_envs < 1 or warmup_env.num_envs % n_envs:
        allowed = f"the number of environments of warmup_env, {warmup_env.num_envs}, must be a multiple of it"
        raise ParameterError("warm_up", "n_envs", n_envs, allowed)
    # A recording has one stream, whatever the number of environments.
    replay = [one for one in buffers if is_replay(one)]
    for one in replay:
        if one.n_envs != n_envs:
            raise ParameterError("warm_up", "n_envs", n_envs, f"{type(one).__name__} was made for {one.n_envs}")
    if warmup_episodes is None:
        # A recording gets the episodes of one environment only.
        room = replay[0].buffer_size * n_envs if replay else _steps_kept(buffers[0]) * warmup_env.num_envs
        if mean_ep_len is None or not mean_ep_len > 0:
            allowed = "it or warmup_episodes must be given" if mean_ep_len is None else "it must be more than 0"
            raise ParameterError("warm_up", "mean_ep_len", mean_ep_len, allowed)
        warmup_episodes = round(room * _FILLED / mean_ep_len)
    if warmup_episodes < warmup_env.num_envs:
        allowed = f"each of {warmup_env.num_envs} environments must play at least one"
        hint = "Use fewer environments, or more episodes."
        raise ParameterError("warm_up", "warmup_episodes", warmup_episodes, allowed, hint)
    options: dict[str, Any] = {"deterministic": deterministic, "progress": progress, "record_frames": record_frames}
    return eval_model(warmup_episodes, warmup_env, warmup_model, False, buffers, record_env=record_env, **options)


def _steps_kept(recording: Any) -> int:
    size: int | None = getattr(recording, "max_size", None)
    if size is None:
        allowed = f"it must be given: {type(recording).__name__} does not say how many steps it keeps (max_size)"
        raise ParameterError("warm_up", "warmup_episodes", None, allowed)
    return size
