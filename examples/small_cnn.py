"""``SmallCnn``: a network that learns small games on one core."""

from __future__ import annotations

import torch as th
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor


class SmallCnn(BaseFeaturesExtractor):
    """A tenth of the work of SB3's ``NatureCNN`` or less: its gradient steps would take most of the time.

    :param observation_space: stacked frames
    :param first: kernel size and stride of the first layer
    :param second: those of the second one
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
        """Features of observations that are already scaled to the range from 0 to 1."""
        features: th.Tensor = self.layers(observations)
        return features
