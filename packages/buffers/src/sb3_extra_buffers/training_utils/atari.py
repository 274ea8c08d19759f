"""Atari environments with the preprocessing of Stable-Baselines3."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import gymnasium
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv, VecFrameStack, VecTransposeImage

from sb3_extra_buffers.errors import MissingExtraError, ParameterError


def make_env(
    env_id: str,
    n_envs: int,
    vec_env_cls: type[DummyVecEnv] | type[SubprocVecEnv] = SubprocVecEnv,
    framestack: int = 4,
    seed: int | None = None,
    *,
    wrapper_kwargs: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> VecTransposeImage:
    """Make Atari environments for a ``CnnPolicy``: gray frames of 84 x 84, stacked, channels first.

    They are wrapped by ``AtariWrapper`` and, below it, by ``Monitor``: ``info["episode"]`` has the scores of whole
    games, while the agent gets rewards clipped to their signs and an end of the episode with every lost life.

    :param env_id: the game, for instance ``"PongNoFrameskip-v4"``
    :param n_envs: number of environments
    :param vec_env_cls: ``SubprocVecEnv`` runs each in its own process, ``DummyVecEnv`` all in this one. A single
        environment always runs in this process.
    :param framestack: number of frames in an observation; 1 does not stack
    :param seed: of the first environment; each further one has the next number
    :param wrapper_kwargs: arguments of ``AtariWrapper``, for instance ``{"terminal_on_life_loss": False}``
    :param kwargs: arguments of ``gymnasium.make`` and the emulator, for instance ``render_mode="human"`` or
        ``full_action_space=True``
    """
    for name, count in (("n_envs", n_envs), ("framestack", framestack)):
        if count < 1:
            raise ParameterError("make_env", name, count, "it must be at least 1")
    _check_game(env_id)
    games: VecEnv = make_atari_env(
        # A function, not a name: it registers the games in new processes, too.
        partial(_make_game, env_id),
        n_envs,
        seed=seed,
        env_kwargs={"render_mode": "rgb_array", **kwargs},
        wrapper_kwargs=dict(wrapper_kwargs or {}),
        vec_env_cls=DummyVecEnv if n_envs == 1 else vec_env_cls,
    )
    return VecTransposeImage(VecFrameStack(games, framestack) if framestack > 1 else games)


def _check_game(env_id: str) -> None:
    """Fail here: an error in a new process is only seen as a broken pipe."""
    try:
        import cv2  # noqa: F401  # needed by AtariWrapper; its own error names no extra
    except ImportError as error:
        raise MissingExtraError("make_env", "opencv-python-headless", "atari") from error
    _register()
    try:
        gymnasium.spec(env_id)
    except gymnasium.error.UnregisteredEnv as error:
        allowed = "it must be a game that ale-py has, such as 'PongNoFrameskip-v4' or 'MsPacmanNoFrameskip-v4'"
        raise ParameterError("make_env", "env_id", env_id, allowed, str(error)) from error


def _make_game(env_id: str, **kwargs: Any) -> gymnasium.Env[Any, Any]:
    _register()
    return gymnasium.make(env_id, **kwargs)


def _register() -> None:
    try:
        import ale_py
    except ImportError as error:
        raise MissingExtraError("make_env", "ale-py", "atari") from error
    # The emulator prints a banner on stderr unless only errors are logged.
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    gymnasium.register_envs(ale_py)
