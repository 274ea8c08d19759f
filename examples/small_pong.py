"""Pong with small pictures, and the PPO that learns it on one core: what is left out is what costs time."""

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

from examples.small_cnn import SmallCnn

SCREEN = 40
#: Points of a lost and of a won game: whoever has 21 first wins.
WORST, BEST = -21, 21
#: What a returned ball is worth while learning. It is not part of the scores that are reported.
BONUS = 0.5

_ENVIRONMENTS = 32
#: A thirtieth of the work of SB3's ``NatureCNN``.
_LAYERS = {"first": (4, 4), "second": (4, 2)}
_STACK = 4
_COURT = slice(34, 194)  # rows between the walls; above them stands the score
_FLOOR = 87  # the gray of the court
_BUTTONS = (0, 2, 3)  # nothing, up, down
_LONGEST_WAIT = 8
_BALL_X = 49  # in the memory of the console: 0 or 205 while no ball is in play, else from 68 at the left
_OWN_SIDE = 150


class SmallPong(gymnasium.Wrapper[NDArray[np.uint8], np.int64, NDArray[np.uint8], np.int64]):
    """Pong at every fourth frame, with three buttons, seen as 40 x 40 gray pixels on a black court.

    Nothing is random but a short wait before the first ball, and the agent itself.
    """

    def __init__(self) -> None:
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)  # it announces itself on stderr otherwise
        gymnasium.register_envs(ale_py)
        settings: dict[str, Any] = {"obs_type": "grayscale", "frameskip": 4, "repeat_action_probability": 0.0}
        super().__init__(gymnasium.make("ALE/Pong-v5", disable_env_checker=True, **settings))
        self.observation_space = spaces.Box(0, 255, (SCREEN, SCREEN, 1), np.uint8)
        self.action_space = spaces.Discrete(len(_BUTTONS))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Start a game, and wait a few frames, so that no two games are alike.

        :param seed: of the waits
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
    """A small reward for each ball that the agent sends back, which it would need far longer to find out by scores.

    :param env: a game that a ``Monitor`` has wrapped already, so that scores are reported without the bonus
    """

    def __init__(self, env: gymnasium.Env[NDArray[np.uint8], np.int64]) -> None:
        super().__init__(env)
        self._x = self._speed = 0

    def step(self, action: np.int64) -> tuple[NDArray[np.uint8], Any, bool, bool, dict[str, Any]]:
        """Add the bonus when the ball turns around on the agent's side.

        :param action: of the agent
        """
        observation, reward, terminated, truncated, info = self.env.step(action)
        emulator: Any = self.unwrapped
        x = int(emulator.ale.getRAM()[_BALL_X])
        speed, self._x = x - self._x, x
        if speed < 0 < self._speed and x > _OWN_SIDE:
            reward = float(reward) + BONUS
        # A ball that touches the paddle rests for a moment, and one that is served has jumped to the middle.
        if speed:
            self._speed = speed if abs(speed) < SCREEN else 0
        return observation, reward, terminated, truncated, info


def make_pong_learner(seed: int, buffer_class: type[RolloutBuffer]) -> PPO:
    """A PPO whose settings are for a short training: larger steps and a smaller network than are usual.

    :param seed: of games, network and exploration
    :param buffer_class: where it keeps rollouts
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
    # The wrapper comes after the Monitor that this puts around each game.
    games = make_vec_env(SmallPong, _ENVIRONMENTS, seed=seed, wrapper_class=ReturnBonus)
    return VecTransposeImage(VecFrameStack(games, _STACK))


def _small(frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
    court = cv2.resize(frame[_COURT] - np.uint8(_FLOOR), (SCREEN, SCREEN), interpolation=cv2.INTER_AREA)
    # A ball is smaller than a pixel here, and dark for that. Twice as bright, nothing is lost: no pixel is above 127.
    return np.asarray(cv2.add(court, court), np.uint8)[..., np.newaxis]
