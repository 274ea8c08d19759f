"""``DummyVecReplayBuffer``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.buffers import BaseBuffer, DictReplayBuffer, ReplayBuffer
from stable_baselines3.common.vec_env import VecNormalize

from sb3_extra_buffers.vec_buf.fan_out import FanOut, Fed


class DummyVecReplayBuffer(Fed, ReplayBuffer):
    """
    A replay buffer that stores nothing itself: several others get everything that is added. The first of them is
    sampled; all of them can be looked at and compared.

    As ``replay_buffer_class`` of a model, with ``buffers`` in ``replay_buffer_kwargs``::

        buffers = [ReplayBuffer, partial(CompressedReplayBuffer, compression_method="zstd-3")]

    :param buffer_size: Max number of element in the buffer
    :param observation_space: Observation space
    :param action_space: Action space
    :param device: PyTorch device
    :param n_envs: Number of parallel environments
    :param optimize_memory_usage: What the buffers are made with, if they are made here
    :param handle_timeout_termination: The same
    :param use_threads: Whether to call the buffers in threads of their own, side by side
    :param buffers: Replay buffers of this size, or classes and partials, which are called with the arguments given
        here. By default, one of Stable-Baselines3.
    :param kwargs: Whatever else the classes take
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        device: th.device | str = "auto",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,
        handle_timeout_termination: bool = True,
        use_threads: bool = False,
        buffers: Iterable[Any] | None = None,
        **kwargs: Any,
    ) -> None:
        name = type(self).__name__
        if buffers is None:
            buffers = [DictReplayBuffer if isinstance(observation_space, spaces.Dict) else ReplayBuffer]

        def make(kind: Any) -> ReplayBuffer:
            made: ReplayBuffer = kind(
                buffer_size,
                observation_space,
                action_space,
                device=device,
                n_envs=n_envs,
                optimize_memory_usage=optimize_memory_usage,
                handle_timeout_termination=handle_timeout_termination,
                **kwargs,
            )
            return made

        # Not that of ReplayBuffer, which would allocate what is never used.
        BaseBuffer.__init__(self, buffer_size, observation_space, action_space, device, n_envs=n_envs)
        self.buffer_size = max(buffer_size // n_envs, 1)
        self.optimize_memory_usage = optimize_memory_usage
        self.handle_timeout_termination = handle_timeout_termination
        self._fan_out = FanOut(name, buffers, make, use_threads)
        self._fan_out.check(name, self.buffer_size, n_envs)

    def reset(self) -> None:
        """Forget all transitions, in every buffer."""
        self._fan_out.call("reset")
        self._follow()

    def add(
        self,
        obs: Any,
        next_obs: Any,
        action: NDArray[Any],
        reward: NDArray[Any],
        done: NDArray[Any],
        infos: list[dict[str, Any]],
    ) -> None:
        """Add a step to every buffer."""
        self._fan_out.call("add", obs, next_obs, action, reward, done, infos)
        self._follow()

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> Any:
        """
        Sample the first buffer.

        :param batch_size: Number of element to sample
        :param env: associated gym VecEnv to normalize the observations/rewards when sampling
        """
        return self._fan_out.first.sample(batch_size, env=env)

    def _follow(self) -> None:
        self.pos, self.full = self._fan_out.first.pos, self._fan_out.first.full
