"""Atari games as Stable-Baselines3 plays them."""

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
    """
    Atari environments that a ``CnnPolicy`` takes as they are: gray frames of 84 x 84, stacked, channels first.

    They are wrapped by ``AtariWrapper`` and, below it, by ``Monitor``: ``info["episode"]`` tells of whole games with
    their own scores, while the agent sees rewards clipped to their signs and an end at every life that is lost.

    :param env_id: the game, for instance ``"PongNoFrameskip-v4"``
    :param n_envs: how many run side by side
    :param vec_env_cls: ``SubprocVecEnv`` runs each in a process of its own, ``DummyVecEnv`` all in this one. A single
        environment is never worth a process.
    :param framestack: how many frames an observation has; 1 leaves them alone
    :param seed: of the first environment; each further one has the next number
    :param wrapper_kwargs: what ``AtariWrapper`` takes, for instance ``{"terminal_on_life_loss": False}``
    :param kwargs: what ``gymnasium.make`` and the emulator take, for instance ``render_mode="human"`` or
        ``full_action_space=True``
    """
    for name, count in (("n_envs", n_envs), ("framestack", framestack)):
        if count < 1:
            raise ParameterError("make_env", name, count, "it must be at least 1")
    _check_game(env_id)
    games: VecEnv = make_atari_env(
        # A function, not a name: with it, new processes know the games too.
        partial(_make_game, env_id),
        n_envs,
        seed=seed,
        env_kwargs={"render_mode": "rgb_array", **kwargs},
        wrapper_kwargs=dict(wrapper_kwargs or {}),
        vec_env_cls=DummyVecEnv if n_envs == 1 else vec_env_cls,
    )
    return VecTransposeImage(VecFrameStack(games, framestack) if framestack > 1 else games)


def _check_game(env_id: str) -> None:
    """Fail here, and not in a process that only says that its pipe is broken."""
    feature = "make_env"
    try:
        import cv2  # noqa: F401  # AtariWrapper needs it, and would say so in words of its own
    except ImportError as error:
        raise MissingExtraError(feature, "opencv-python-headless", "atari") from error
    _register(feature)
    try:
        gymnasium.spec(env_id)
    except gymnasium.error.UnregisteredEnv as error:
        allowed = "it must be a game that ale-py has, such as 'PongNoFrameskip-v4' or 'MsPacmanNoFrameskip-v4'"
        raise ParameterError(feature, "env_id", env_id, allowed, str(error)) from error


def _make_game(env_id: str, **kwargs: Any) -> gymnasium.Env[Any, Any]:
    _register("make_env")
    return gymnasium.make(env_id, **kwargs)


def _register(feature: str) -> None:
    try:
        import ale_py
    except ImportError as error:
        raise MissingExtraError(feature, "ale-py", "atari") from error
    # The emulator announces itself on stderr when it is made, unless only errors are asked for.
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    gymnasium.register_envs(ale_py)
