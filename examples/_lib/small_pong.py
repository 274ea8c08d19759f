"""Pong with small pictures, and a PPO that learns it on one core."""

from __future__ import annotations

from typing import Any

import ale_py
import cv2
import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecEnv, VecFrameStack, VecTransposeImage

from examples._lib.networks import SmallCnn

SCREEN = 40
#: Points of a lost and of a won game.
WORST, BEST = -21, 21
#: Reward for a returned ball during training. It is not part of the reported scores.
BONUS = 0.5

_ENVIRONMENTS = 32
#: A thirtieth of the operations of SB3's ``NatureCNN``.
_LAYERS = {"first": (4, 4), "second": (4, 2)}
_STACK = 4
_COURT = slice(34, 194)  # rows between the walls; the score is above
_FLOOR = 87  # the gray of the court
_BUTTONS = (0, 2, 3)  # nothing, up, down
_LONGEST_WAIT = 8
_BALL_X = 49  # address in RAM: 0 or 205 while no ball is in play, else 68 or more, from the left
_OWN_SIDE = 150


class SmallPong(gymnasium.Wrapper[NDArray[np.uint8], np.int64, NDArray[np.uint8], np.int64]):
    """Pong with every fourth frame and three actions, as 40 x 40 gray pixels on a black court.

    The only random part is a short wait before the first ball.
    """

    def __init__(self) -> None:
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)  # no banner on stderr
        gymnasium.register_envs(ale_py)
        settings: dict[str, Any] = {"obs_type": "grayscale", "frameskip": 4, "repeat_action_probability": 0.0}
        super().__init__(gymnasium.make("ALE/Pong-v5", disable_env_checker=True, **settings))
        self.observation_space = spaces.Box(0, 255, (SCREEN, SCREEN, 1), np.uint8)
        self.action_space = spaces.Discrete(len(_BUTTONS))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Start a game, and wait a random number of frames.

        :param seed: seed of the waits
        :param options: passed on
        """
        frame, info = self.env.reset(seed=seed, options=options)
        for _ in range(int(self.np_random.integers(_LONGEST_WAIT))):
            frame, *_ = self.env.step(np.int64(0))
        return _small(frame), info

    def step(self, action: np.int64) -> tuple[NDArray[np.uint8], Any, bool, bool, dict[str, Any]]:
        """Press a button for four frames.

        :param action: 0 nothing, 1 up, 2 down
        """
        frame, reward, terminated, truncated, info = self.env.step(np.int64(_BUTTONS[int(action)]))
        return _small(frame), reward, terminated, truncated, info


class ReturnBonus(gymnasium.Wrapper[NDArray[np.uint8], np.int64, NDArray[np.uint8], np.int64]):
    """A small reward for each returned ball. Without it, learning takes far longer.

    :param env: a game inside a ``Monitor``, so that scores are reported without the bonus
    """

    def __init__(self, env: gymnasium.Env[NDArray[np.uint8], np.int64]) -> None:
        super().__init__(env)
        self._x = self._speed = 0

    def step(self, action: np.int64) -> tuple[NDArray[np.uint8], Any, bool, bool, dict[str, Any]]:
        """Add the bonus when the ball turns on the agent's side.

        :param action: action of the agent
        """
        observation, reward, terminated, truncated, info = self.env.step(action)
        emulator: Any = self.unwrapped
        x = int(emulator.ale.getRAM()[_BALL_X])
        speed, self._x = x - self._x, x
        if speed < 0 < self._speed and x > _OWN_SIDE:
            reward = float(reward) + BONUS
        # A ball rests for a moment on the paddle. A served ball jumps to the middle.
        if speed:
            self._speed = speed if abs(speed) < SCREEN else 0
        return observation, reward, terminated, truncated, info


def make_pong_learner(seed: int, buffer_class: type[RolloutBuffer]) -> PPO:
    """A PPO for a short training, with a larger learning rate and a smaller network than usual.

    :param seed: seed of games, network and exploration
    :param buffer_class: class of its rollout buffer
    """
    return PPO(
        "CnnPolicy",
        _make_games(seed),
        learning_rate=1e-3,
        n_steps=64,
        batch_size=256,
        n_epochs=4,
        gamma=0.98,
        clip_range=0.2,
        ent_coef=0.01,
        rollout_buffer_class=buffer_class,
        policy_kwargs={"features_extractor_class": SmallCnn, "features_extractor_kwargs": _LAYERS, "net_arch": []},
        seed=seed,
        device="cpu",
    )


def _make_games(seed: int) -> VecEnv:
    # The wrapper is applied outside the Monitor.
    games = make_vec_env(SmallPong, _ENVIRONMENTS, seed=seed, wrapper_class=ReturnBonus)
    return VecTransposeImage(VecFrameStack(games, _STACK))


def _small(frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
    court = cv2.resize(frame[_COURT] - np.uint8(_FLOOR), (SCREEN, SCREEN), interpolation=cv2.INTER_AREA)
    # The ball is smaller than a pixel and therefore dark. Doubling loses nothing: no pixel is above 127.
    return np.asarray(cv2.add(court, court), np.uint8)[..., np.newaxis]
