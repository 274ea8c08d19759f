"""``DummyVecReplayBuffer`` and ``DummyVecRolloutBuffer``: pass everything on to several other buffers."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.buffers import (
    BaseBuffer,
    DictReplayBuffer,
    DictRolloutBuffer,
    ReplayBuffer,
    RolloutBuffer,
)
from stable_baselines3.common.vec_env import VecNormalize

from sb3_extra_buffers.errors import ParameterError


class _FanOut(BaseBuffer):
    """A buffer that passes on what it gets, and answers as the first of its buffers."""

    _buffers: list[Any]
    _use_threads: bool
    _pool: ThreadPoolExecutor | None = None

    @property
    def buffers(self) -> list[Any]:
        """The buffers behind this one. A model learns from the first."""
        return self._buffers

    def _set_buffers(
        self, parts: Iterable[Any], make: Callable[[Any], BaseBuffer], use_threads: bool, steps: int, n_envs: int
    ) -> None:
        """Keep the buffers among ``parts`` and call ``make`` for the classes and partials among them."""
        name, self._use_threads = type(self).__name__, use_threads
        self._buffers = [part if isinstance(part, BaseBuffer) else make(part) for part in parts]
        if not self._buffers:
            raise ParameterError(name, "buffers", [], "there must be at least one")
        for buffer in self._buffers:
            if (buffer.buffer_size, buffer.n_envs) != (steps, n_envs):
                found = f"{type(buffer).__name__} with {buffer.buffer_size} steps for {buffer.n_envs} environments"
                allowed = f"each must have {steps} steps for {n_envs} environments"
                raise ParameterError(name, "buffers", found, allowed)

    def _call(self, name: str, *args: Any, **kwargs: Any) -> None:
        """Call a method of every buffer."""
        if not self._use_threads or len(self._buffers) == 1:
            for buffer in self._buffers:
                getattr(buffer, name)(*args, **kwargs)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(len(self._buffers), "vec_buf")
        futures = [self._pool.submit(getattr(buffer, name), *args, **kwargs) for buffer in self._buffers]
        for future in futures:
            future.result()

    def __getattr__(self, name: str) -> Any:
        # Observations, rewards and so on. Private names may be asked for before there are buffers, as by pickle.
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._buffers[0], name)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_pool"}


class DummyVecReplayBuffer(_FanOut, ReplayBuffer):
    """A replay buffer without storage of its own: everything that is added goes to several other buffers. Samples come
    from the first of them.

    As ``replay_buffer_class`` of a model, with ``buffers`` in ``replay_buffer_kwargs``::

        buffers = [ReplayBuffer, partial(CompressedReplayBuffer, compression_method="zstd-3")]

    :param buffer_size: Max number of element in the buffer
    :param observation_space: Observation space
    :param action_space: Action space
    :param device: PyTorch device
    :param n_envs: Number of parallel environments
    :param optimize_memory_usage: For buffers that are made here
    :param handle_timeout_termination: For buffers that are made here
    :param use_threads: Whether to call the buffers in parallel threads
    :param buffers: Replay buffers of this size, or classes and partials, which are called with the arguments given
        here. Default: one buffer of Stable-Baselines3.
    :param kwargs: Further arguments of the classes
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
        if buffers is None:
            buffers = [DictReplayBuffer if isinstance(observation_space, spaces.Dict) else ReplayBuffer]
        options = {
            "optimize_memory_usage": optimize_memory_usage,
            "handle_timeout_termination": handle_timeout_termination,
            **kwargs,
        }

        def make(kind: Any) -> Any:
            return kind(buffer_size, observation_space, action_space, device=device, n_envs=n_envs, **options)

        # Not ReplayBuffer.__init__, which would allocate arrays that are never used.
        BaseBuffer.__init__(self, buffer_size, observation_space, action_space, device, n_envs=n_envs)
        self.buffer_size = max(buffer_size // n_envs, 1)
        self.optimize_memory_usage = optimize_memory_usage
        self.handle_timeout_termination = handle_timeout_termination
        self._set_buffers(buffers, make, use_threads, self.buffer_size, n_envs)

    def reset(self) -> None:
        """Remove all transitions from every buffer."""
        self._call("reset")
        self._copy_position()

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
        self._call("add", obs, next_obs, action, reward, done, infos)
        self._copy_position()

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> Any:
        """Sample the first buffer."""
        return self._buffers[0].sample(batch_size, env=env)

    def _copy_position(self) -> None:
        self.pos, self.full = self._buffers[0].pos, self._buffers[0].full


class DummyVecRolloutBuffer(_FanOut, RolloutBuffer):
    """
    A rollout buffer without storage of its own: everything that is added goes to several other buffers. A model trains
    with the first of them.

    As ``rollout_buffer_class`` of a model, with ``buffers`` in ``rollout_buffer_kwargs``::

        buffers = [RolloutBuffer, partial(CompressedRolloutBuffer, compression_method="zstd-3")]

    :param buffer_size: Max number of element in the buffer
    :param observation_space: Observation space
    :param action_space: Action space
    :param device: PyTorch device
    :param n_envs: Number of parallel environments
    :param use_threads: Whether to call the buffers in parallel threads
    :param buffers: Rollout buffers of this size, or classes and partials, which are called with the arguments given
        here. Default: one buffer of Stable-Baselines3.
    :param kwargs: ``gae_lambda``, ``gamma`` and further arguments of the classes
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
        if buffers is None:
            buffers = [DictRolloutBuffer if isinstance(observation_space, spaces.Dict) else RolloutBuffer]

        def make(kind: Any) -> Any:
            return kind(buffer_size, observation_space, action_space, device=device, n_envs=n_envs, **kwargs)

        # Before the constructor of Stable-Baselines3, which calls reset().
        self._set_buffers(buffers, make, use_threads, buffer_size, n_envs)
        given = {name: getattr(self._buffers[0], name) for name in ("gae_lambda", "gamma")}
        super().__init__(buffer_size, observation_space, action_space, device=device, n_envs=n_envs, **given)
        del self.generator_ready  # that of the first buffer counts

    def reset(self) -> None:
        """Remove the rollout from every buffer."""
        self._call("reset")
        self._copy_position()

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
        """Add a step to every buffer; ``kwargs`` are further arguments of the buffers of sb3-contrib."""
        self._call("add", obs, action, reward, episode_start, value, log_prob, **kwargs)
        self._copy_position()

    def compute_returns_and_advantage(self, last_values: th.Tensor, dones: NDArray[np.bool_]) -> None:
        """Compute returns and advantages in every buffer."""
        self._call("compute_returns_and_advantage", last_values=last_values, dones=dones)

    def get(self, batch_size: int | None = None) -> Generator[Any, None, None]:
        """Iterate over the rollout of the first buffer once, in random order."""
        batches: Generator[Any, None, None] = self._buffers[0].get(batch_size)
        return batches

    def _copy_position(self) -> None:
        self.pos = self._buffers[0].pos
        self.full = all(buffer.full for buffer in self._buffers)
