"""Catch: balls fall over a city, a paddle catches them. Learnt from images within a minute."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

SCREEN = 84
#: Balls per episode: the best return. A miss costs nothing.
BALLS = 10

_BALL = 6
_SLOWEST, _FASTEST = 3, 5
_STRONGEST_DRIFT = 2
_PADDLE = 16
_PADDLE_TOP = 74
_PADDLE_SPEED = 5
_LANDING = _PADDLE_TOP - _BALL
_WHITE = 255


class Catch(gymnasium.Env[NDArray[np.uint8], np.int64]):
    """Move a paddle left or right to catch falling balls.

    An observation is one gray frame of 84 x 84 pixels. The drift and speed of a ball are only visible over several
    frames, as in many games. The background is a city, so that frames compress about as well as those of an Atari game.
    """

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0, _WHITE, (SCREEN, SCREEN, 1), np.uint8)
        self.action_space = spaces.Discrete(3)
        self._city = _city()
        self._paddle = 0
        self._x = self._y = self._drift = self._speed = 0
        self._fallen = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Start an episode: the paddle somewhere, the first ball at the top.

        :param seed: seed of the balls
        :param options: not used
        """
        super().reset(seed=seed, options=options)
        self._paddle = int(self.np_random.integers(SCREEN - _PADDLE + 1))
        self._fallen = 0
        self._drop()
        return self._frame(), {}

    def step(self, action: np.int64) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        """Move the paddle, then the ball.

        :param action: 0 left, 1 nowhere, 2 right
        """
        self._paddle = min(max(self._paddle + _PADDLE_SPEED * (int(action) - 1), 0), SCREEN - _PADDLE)
        self._y += self._speed
        self._x += self._drift
        if not 0 <= self._x <= SCREEN - _BALL:
            self._drift = -self._drift
            self._x += 2 * self._drift
        reward = 0.0
        if self._y >= _LANDING:
            reward = float(-_BALL < self._x - self._paddle < _PADDLE)
            self._fallen += 1
            self._drop()
        return self._frame(), reward, self._fallen == BALLS, False, {}

    def instruments(self) -> NDArray[np.float32]:
        """Drift and speed of the ball, which one frame does not show, scaled to at most 1."""
        return np.array([self._drift / _STRONGEST_DRIFT, self._speed / _FASTEST], np.float32)

    def _drop(self) -> None:
        self._x = int(self.np_random.integers(SCREEN - _BALL + 1))
        self._drift = int(self.np_random.integers(-_STRONGEST_DRIFT, _STRONGEST_DRIFT + 1))
        self._speed = int(self.np_random.integers(_SLOWEST, _FASTEST + 1))
        self._y = 0

    def _frame(self) -> NDArray[np.uint8]:
        frame = self._city.copy()
        frame[self._y : self._y + _BALL, self._x : self._x + _BALL] = _WHITE
        frame[_PADDLE_TOP : _PADDLE_TOP + 4, self._paddle : self._paddle + _PADDLE] = _WHITE
        return frame[..., np.newaxis]


def _city() -> NDArray[np.uint8]:
    """Houses with lit windows under stars."""
    random = np.random.default_rng(0)
    city = np.full((SCREEN, SCREEN), 8, np.uint8)
    city[random.integers(0, SCREEN, 80), random.integers(0, SCREEN, 80)] = 64
    for left in range(0, SCREEN, 12):
        house = city[int(random.integers(24, 60)) :, left : left + 11]
        house[:] = random.integers(16, 48)
        windows = house[2::4, 1::2]
        windows[:] = random.integers(48, 112, windows.shape)
    return city


class CatchWithInstruments(gymnasium.ObservationWrapper[dict[str, NDArray[Any]], np.int64, NDArray[np.uint8]]):
    """Catch as a Dict of one frame and the speed of the ball. No stack of frames is needed."""

    def __init__(self) -> None:
        self._game = Catch()
        super().__init__(self._game)
        instruments = spaces.Box(-1, 1, (2,), np.float32)
        both = {"image": self._game.observation_space, "instruments": instruments}
        self.observation_space = spaces.Dict(both)  # type: ignore[assignment]  # gymnasium says object, not Any

    def observation(self, observation: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
        """The frame and the speed.

        :param observation: the frame
        """
        return {"image": observation, "instruments": self._game.instruments()}
