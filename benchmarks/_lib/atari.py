"""Atari observations of random play, and the transitions that a buffer is given."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sb3_extra_buffers.errors import MissingExtraError, ParameterError

SCREEN = 84
STACK = 4
OBSERVATION_SPACE = spaces.Box(0, 255, (STACK, SCREEN, SCREEN), np.uint8)
ACTION_SPACE = spaces.Discrete(9)
_OBSERVATIONS_PER_REPORT = 64


def stacked_frames(
    game: str, count: int, seed: int = 0, progress: Callable[[int], None] | None = None
) -> NDArray[np.uint8]:
    """Observations of random play: shape ``(count, 84, 84, 4)``, C-contiguous, newest frame last.

    The same arguments give the same observations. After each reset the older frames are zero, as in ``VecFrameStack``.

    :param game: the name of a game, such as ``"MsPacman"``
    :param count: number of observations
    :param seed: seed of the game and of the random actions
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
    with ale_games("stacked_frames", game):
        env = gymnasium.make(f"ALE/{game}-v5", frameskip=1)
    return gymnasium.wrappers.AtariPreprocessing(env, frame_skip=4, screen_size=SCREEN)


@contextmanager
def ale_games(function: str, game: str) -> Iterator[None]:
    """Register the ALE games while the block makes one, and name what is missing.

    :param function: named in errors
    :param game: named in errors
    """
    feature = "Playing an Atari game"
    try:
        import ale_py
    except ImportError as error:
        raise MissingExtraError(feature, "ale-py", "atari") from error
    try:
        import cv2  # noqa: F401  # the Atari wrappers need it
    except ImportError as error:
        raise MissingExtraError(feature, "opencv-python-headless", "atari") from error
    # The emulator prints a banner to stderr unless only errors are logged.
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    gymnasium.register_envs(ale_py)
    try:
        yield
    except gymnasium.error.UnregisteredEnv as error:
        allowed = "it must be a game that ale-py has, such as 'MsPacman' or 'Pong'"
        raise ParameterError(function, "game", game, allowed, str(error)) from error


class Step(NamedTuple):
    """The arguments of ``ReplayBuffer.add``: one row for each environment."""

    obs: NDArray[np.uint8]
    next_obs: NDArray[np.uint8]
    action: NDArray[np.int64]
    reward: NDArray[np.float32]
    done: NDArray[np.bool_]
    infos: list[dict[str, Any]]

    def turned(self) -> Step:
        """The same step as training passes it: ``VecTransposeImage`` makes views of channels-last images."""
        return self._replace(obs=_turned(self.obs), next_obs=_turned(self.next_obs))


def _turned(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(images.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)


class Transitions:
    """Several environments that repeat one game, each from another position.

    ``next_obs`` equals the ``obs`` of the following step, except at the end of an episode. Each step has new arrays, as
    in ``collect_rollouts`` of Stable-Baselines3.

    :param observations: shape ``(n, 4, 84, 84)``, in order
    :param n_envs: number of environments
    """

    def __init__(self, observations: NDArray[np.uint8], n_envs: int) -> None:
        # After a reset, the older frames of the stack are zero.
        first = np.array([not observation[:-1].any() for observation in observations])
        self._observations = observations
        self._cells = np.flatnonzero(~first[1:])
        self._is_last = np.append(first, True)[self._cells + 2]
        self._at = np.arange(n_envs) * len(self._cells) // n_envs
        self._random = np.random.default_rng(0)

    def twin(self) -> Transitions:
        """A copy that continues with the same steps."""
        twin = copy.copy(self)
        twin._random = copy.deepcopy(self._random)
        return twin

    def step(self) -> Step:
        """The next step of all environments."""
        cells, done, n_envs = self._cells[self._at], self._is_last[self._at], len(self._at)
        self._at = (self._at + 1) % len(self._cells)
        # The last recorded episode is incomplete; its end counts as an end, too.
        done = done | (self._at == 0)
        action, reward = self._random.integers(9, size=n_envs), self._random.random(n_envs, np.float32)
        observations = self._observations
        return Step(observations[cells], observations[cells + 1], action, reward, done, [{} for _ in range(n_envs)])
