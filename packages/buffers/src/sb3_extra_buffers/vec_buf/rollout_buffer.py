"""``DummyVecRolloutBuffer``."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.buffers import DictRolloutBuffer, RolloutBuffer

from sb3_extra_buffers.vec_buf.fan_out import FanOut, Fed


class DummyVecRolloutBuffer(Fed, RolloutBuffer):
    """
    A rollout buffer that stores nothing itself: several others get everything that is added. The first of them is
    trained with; all of them can be looked at and compared.

    As ``rollout_buffer_class`` of a model, with ``buffers`` in ``rollout_buffer_kwargs``::

        buffers = [RolloutBuffer, partial(CompressedRolloutBuffer, compression_method="zstd-3")]

    :param buffer_size: Max number of element in the buffer
    :param observation_space: Observation space
    :param action_space: Action space
    :param device: PyTorch device
    :param n_envs: Number of parallel environments
    :param use_threads: Whether to call the buffers in threads of their own, side by side
    :param buffers: Rollout buffers of this size, or classes and partials, which are called with the arguments given
        here. By default, one of Stable-Baselines3.
    :param kwargs: ``gae_lambda``, ``gamma`` and whatever else the classes take
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        device: th.device | str = "auto",
        n_envs: int = 1,
        use_threads: bool = False,
        buffers: Iterable[Any] | None = None,
        **kwargs: Any,
    ) -> None:
        name = type(self).__name__
        if buffers is None:
            buffers = [DictRolloutBuffer if isinstance(observation_space, spaces.Dict) else RolloutBuffer]

        def make(kind: Any) -> RolloutBuffer:
            made: RolloutBuffer = kind(
                buffer_size, observation_space, action_space, device=device, n_envs=n_envs, **kwargs
            )
            return made

        # Before the constructor of Stable-Baselines3 runs, because that calls reset().
        self._fan_out = FanOut(name, buffers, make, use_threads)
        self._fan_out.check(name, buffer_size, n_envs)
        first = self._fan_out.first
        super().__init__(
            buffer_size,
            observation_space,
            action_space,
            device=device,
            gae_lambda=first.gae_lambda,
            gamma=first.gamma,
            n_envs=n_envs,
        )
        del self.generator_ready  # that of the first is meant

    def reset(self) -> None:
        """Forget the rollout, in every buffer."""
        self._fan_out.call("reset")
        self._follow()

    def add(
        self,
        obs: Any,
        action: NDArray[Any],
        reward: NDArray[Any],
        episode_start: NDArray[Any],
        value: th.Tensor,
        log_prob: th.Tensor,
        **kwargs: Any,
    ) -> None:
        """
        Add a step to every buffer.

        :param obs: Observation
        :param action: Action
        :param reward: Reward
        :param episode_start: Start of episode signal.
        :param value: estimated value of the current state following the current policy.
        :param log_prob: log probability of the action following the current policy.
        :param kwargs: what the buffers of sb3-contrib take besides
        """
        self._fan_out.call("add", obs, action, reward, episode_start, value, log_prob, **kwargs)
        self._follow()

    def compute_returns_and_advantage(self, last_values: th.Tensor, dones: NDArray[np.bool_]) -> None:
        """
        Compute them in every buffer.

        :param last_values: state value estimation for the last step (one for each env)
        :param dones: if the last step was a terminal step (one bool for each env).
        """
        self._fan_out.call("compute_returns_and_advantage", last_values=last_values, dones=dones)

    def get(self, batch_size: int | None = None) -> Generator[Any, None, None]:
        """
        Go through the rollout of the first buffer once, in random order.

        :param batch_size: Number of steps per batch; all at once if left out
        """
        batches: Generator[Any, None, None] = self._fan_out.first.get(batch_size)
        return batches

    def _follow(self) -> None:
        self.pos = self._fan_out.first.pos
        self.full = all(buffer.full for buffer in self._fan_out.buffers)
