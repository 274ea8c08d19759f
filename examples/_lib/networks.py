"""Networks that learn small games on one core."""

from __future__ import annotations

import torch as th
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor


class SmallCnn(BaseFeaturesExtractor):
    """A convolutional network with at most a tenth of the operations of SB3's ``NatureCNN``.

    :param observation_space: stacked frames
    :param first: kernel size and stride of the first layer
    :param second: kernel size and stride of the second layer
    """

    def __init__(
        self, observation_space: spaces.Box, first: tuple[int, int] = (6, 6), second: tuple[int, int] = (3, 2)
    ) -> None:
        super().__init__(observation_space, features_dim=128)
        depth, side = observation_space.shape[0], observation_space.shape[-1]
        for kernel, stride in (first, second):
            side = (side - kernel) // stride + 1
        self.layers = th.nn.Sequential(
            th.nn.Conv2d(depth, 16, *first),
            th.nn.ReLU(),
            th.nn.Conv2d(16, 32, *second),
            th.nn.ReLU(),
            th.nn.Flatten(),
            th.nn.Linear(32 * side * side, 128),
            th.nn.ReLU(),
        )

    def forward(self, observations: th.Tensor) -> th.Tensor:
        """Features of observations that are already scaled to [0, 1]."""
        features: th.Tensor = self.layers(observations)
        return features


class SmallCombined(BaseFeaturesExtractor):
    """Features of the image, concatenated with the vector.

    :param observation_space: of ``CatchWithInstruments``, channels first
    """

    def __init__(self, observation_space: spaces.Dict) -> None:
        image, instruments = observation_space["image"], observation_space["instruments"]
        assert isinstance(image, spaces.Box)
        cnn = SmallCnn(image)
        super().__init__(observation_space, cnn.features_dim + spaces.flatdim(instruments))
        self.cnn = cnn

    def forward(self, observations: dict[str, th.Tensor]) -> th.Tensor:
        """Features of observations; the image is already scaled to [0, 1]."""
        return th.cat([self.cnn(observations["image"]), observations["instruments"]], dim=1)
