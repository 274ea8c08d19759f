"""Catch as a Dict of an image and a vector, and features of both."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

from examples.catch import Catch
from examples.small_cnn import SmallCnn


class CatchWithInstruments(gymnasium.ObservationWrapper[dict[str, NDArray[Any]], np.int64, NDArray[np.uint8]]):
    """One frame, and beside it how fast the ball moves: nothing has to be stacked to see that."""

    def __init__(self) -> None:
        self._game = Catch()
        super().__init__(self._game)
        instruments = spaces.Box(-1, 1, (2,), np.float32)
        both = {"image": self._game.observation_space, "instruments": instruments}
        self.observation_space = spaces.Dict(both)  # type: ignore[assignment]  # gymnasium says object, not Any

    def observation(self, observation: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
        """Both together.

        :param observation: the frame
        """
        return {"image": observation, "instruments": self._game.instruments()}


class SmallCombined(BaseFeaturesExtractor):
    """Features of the image beside the vector as it is.

    :param observation_space: of ``CatchWithInstruments``, channels first
    """

    def __init__(self, observation_space: spaces.Dict) -> None:
        image, instruments = observation_space["image"], observation_space["instruments"]
        assert isinstance(image, spaces.Box)
        cnn = SmallCnn(image)
        super().__init__(observation_space, cnn.features_dim + spaces.flatdim(instruments))
        self.cnn = cnn

    def forward(self, observations: dict[str, th.Tensor]) -> th.Tensor:
        """Features of observations of which the image is already scaled to the range from 0 to 1."""
        return th.cat([self.cnn(observations["image"]), observations["instruments"]], dim=1)
