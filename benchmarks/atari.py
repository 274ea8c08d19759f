"""Real observations: a random player's view of an Atari game, as Stable-Baselines3 would store it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import MissingExtraError, ParameterError

SCREEN = 84
STACK = 4
_OBSERVATIONS_PER_REPORT = 64


def stacked_frames(
    game: str, count: int, seed: int = 0, progress: Callable[[int], None] | None = None
) -> NDArray[np.uint8]:
    """Play at random and return what the player saw: shape ``(count, 84, 84, 4)``, C-contiguous, newest frame last.

    The same arguments give the same observations. After each reset the older frames are zero, as in ``VecFrameStack``.

    :param game: the name of a game, such as ``"MsPacman"``
    :param count: how many observations, over as many episodes as it takes
    :param seed: of the game and of the player
    :param progress: called now and then with the number of observations so far
    """
    if count < 1:
        raise ParameterError("stacked_frames", "count", count, "it must be at least 1")
    env = _make(game)
    env.action_space.seed(seed)
    observations = np.empty((count, SCREEN, SCREEN, STACK), np.uint8)
    stack = np.zeros((SCREEN, SCREEN, STACK), np.uint8)
    over = True
    for index in range(count):
        if over:
            frame, _ = env.reset(seed=None if index else seed)
            stack.fill(0)
            over = False
        else:
            frame, _, terminated, truncated, _ = env.step(env.action_space.sample())
            stack[..., :-1] = stack[..., 1:]
            over = terminated or truncated
        stack[..., -1] = frame
        observations[index] = stack
        if progress is not None and (index + 1) % _OBSERVATIONS_PER_REPORT == 0:
            progress(index + 1)
    env.close()
    if progress is not None:
        progress(count)
    return observations


def _make(game: str) -> Any:
    feature = "Playing an Atari game"
    try:
        import ale_py
    except ImportError as error:
        raise MissingExtraError(feature, "ale-py", "atari") from error
    try:
        import gymnasium
    except ImportError as error:
        raise MissingExtraError(feature, "gymnasium", "atari") from error
    try:
        import cv2  # noqa: F401  # AtariPreprocessing needs it, and would say so in words of its own
    except ImportError as error:
        raise MissingExtraError(feature, "opencv-python-headless", "atari") from error
    # The emulator announces itself on stderr when it is made, unless only errors are asked for.
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    gymnasium.register_envs(ale_py)
    try:
        env = gymnasium.make(f"ALE/{game}-v5", frameskip=1)
    except gymnasium.error.UnregisteredEnv as error:
        allowed = "it must be a game that ale-py has, such as 'MsPacman' or 'Pong'"
        raise ParameterError("stacked_frames", "game", game, allowed, str(error)) from error
    return gymnasium.wrappers.AtariPreprocessing(env, frame_skip=4, screen_size=SCREEN)
