"""``Stream``: what an agent saw and did, as a replay buffer is given it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer

from sb3_extra_buffers.compressed import CompressedDictReplayBuffer, CompressedReplayBuffer
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.memory import Bytes
from sb3_extra_buffers.training_utils.steps import Step

#: A stream that is shorter says nothing about memory.
MIN_STEPS = 64
#: The key of a space that has none.
NO_KEY = ""


@dataclass(frozen=True)
class Stream:
    """Steps of environments, in order.

    :param label: where they come from
    :param observation_space: as Stable-Baselines3's buffers get it: images channels first
    :param action_space: of the environments
    :param n_envs: how many there are
    :param steps: what happened
    """

    label: str
    observation_space: spaces.Space[Any]
    action_space: spaces.Space[Any]
    n_envs: int
    steps: list[Step]

    def __post_init__(self) -> None:
        if len(self.steps) < MIN_STEPS:
            hint = "Play, or record, for longer."
            raise ParameterError("advise", "steps", len(self.steps), f"it takes {MIN_STEPS} to judge by", hint)

    @property
    def spaces(self) -> dict[str, spaces.Space[Any]]:
        """The observation space of each key; of a space without keys, itself."""
        if isinstance(self.observation_space, spaces.Dict):
            return dict(self.observation_space.spaces)
        return {NO_KEY: self.observation_space}

    @property
    def transitions(self) -> int:
        """Steps of all environments together."""
        return len(self.steps) * self.n_envs

    def rows(self, key: str, count: int) -> Bytes:
        """Some observations of a key from all over the stream, as rows of bytes."""
        every = max(1, len(self.steps) // count)
        dtype = self.spaces[key].dtype
        found = [np.asarray(_of_key(step.observations, key)[0], dtype) for step in self.steps[::every][:count]]
        return np.ascontiguousarray(np.stack(found)).reshape(len(found), -1).view(np.uint8)

    def plain_buffer(self, size: int) -> ReplayBuffer:
        """The buffer of Stable-Baselines3 for it.

        :param size: how many transitions it holds
        """
        return self.plain_class(size, self.observation_space, self.action_space, "cpu", self.n_envs)

    @property
    def plain_class(self) -> type[ReplayBuffer]:
        """The class of Stable-Baselines3 for it."""
        return DictReplayBuffer if isinstance(self.observation_space, spaces.Dict) else ReplayBuffer

    @property
    def buffer_class(self) -> type[CompressedReplayBuffer]:
        """Our class for it."""
        is_dict = isinstance(self.observation_space, spaces.Dict)
        return CompressedDictReplayBuffer if is_dict else CompressedReplayBuffer

    def compressed_buffer(self, size: int, options: Mapping[str, Any]) -> CompressedReplayBuffer:
        """Our buffer for it.

        :param size: how many transitions it holds
        :param options: of storage
        """
        return self.buffer_class(size, self.observation_space, self.action_space, "cpu", self.n_envs, **options)


def feed(buffer: ReplayBuffer, steps: list[Step]) -> None:
    """Add steps to a buffer, as an algorithm does."""
    for step in steps:
        buffer.add(step.observations, step.next_observations, step.scaled_actions, step.rewards, step.dones, step.infos)


def _of_key(observations: Any, key: str) -> Any:
    return observations if key == NO_KEY else observations[key]
