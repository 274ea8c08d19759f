"""``DummyVecReplayBuffer`` and ``DummyVecRolloutBuffer``: pass everything on to several other buffers."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common import buffers as sb3
from stable_baselines3.common.vec_env import VecNormalize

from sb3_extra_buffers.errors import ParameterError


class _FanOut(sb3.BaseBuffer):
    """A buffer that passes on what it gets, and answers as the first of its buffers."""

    _buffers: list[Any]
    _use_threads: bool
    #: What is made if no buffer is given: for any space, and for a Dict space.
    _defaults: tuple[type[sb3.BaseBuffer], type[sb3.BaseBuffer]]
    #: The process that made the threads, and the threads: they do not survive a fork.
    _pool: tuple[int, ThreadPoolExecutor] | None = None

    @property
    def buffers(self) -> list[Any]:
        """The buffers behind this one. A model learns from the first."""
        return self._buffers

    def reset(self) -> None:
        """Empty every buffer."""
        self._call("reset")

    def _set_buffers(
        self, parts: Iterable[Any] | None, use_threads: bool, steps: int, n_envs: int, *args: Any, **kwargs: Any
    ) -> None:
        """Keep the buffers among ``parts``, and call the classes and partials among them with the arguments."""
        name, self._use_threads = type(self).__name__, use_threads
        options = {"n_envs": n_envs, **kwargs}
        parts = [self._defaults[isinstance(args[1], spaces.Dict)]] if parts is None else parts
        self._buffers = [one if isinstance(one, sb3.BaseBuffer) else one(*args, **options) for one in parts]
        if not self._buffers:
            raise ParameterError(name, "buffers", [], "there must be at least one")
        for buffer in self._buffers:
            if (buffer.buffer_size, buffer.n_envs) != (steps, n_envs):
                found = f"{type(buffer).__name__} with {buffer.buffer_size} steps for {buffer.n_envs} environments"
                allowed = f"each must have {steps} steps for {n_envs} environments"
                raise ParameterError(name, "buffers", found, allowed)

    def _call(self, name: str, *args: Any, **kwargs: Any) -> None:
        """Call a method of every buffer, and copy the position of the first."""
        methods = [getattr(buffer, name) for buffer in self._buffers]
        if self._use_threads and len(methods) > 1:
            if self._pool is None or self._pool[0] != os.getpid():
                self._pool = os.getpid(), ThreadPoolExecutor(len(methods), "vec_buf")
            for future in [self._pool[1].submit(method, *args, **kwargs) for method in methods]:
                future.result()
        else:
            for method in methods:
                method(*args, **kwargs)
        self.pos, self.full = self._buffers[0].pos, self._buffers[0].full

    def __getattr__(self, name: str) -> Any:
        # Observations, rewards and so on. Private names may be asked for before there are buffers, as by pickle.
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._buffers[0], name)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_pool"}


class DummyVecReplayBuffer(_FanOut, sb3.ReplayBuffer):
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

    _defaults = sb3.ReplayBuffer, sb3.DictReplayBuffer

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
        # Not ReplayBuffer.__init__, which would allocate arrays that are never used.
        sb3.BaseBuffer.__init__(self, buffer_size, observation_space, action_space, device, n_envs=n_envs)
        self.buffer_size = max(buffer_size // n_envs, 1)
        self.optimize_memory_usage = kwargs["optimize_memory_usage"] = optimize_memory_usage
        self.handle_timeout_termination = kwargs["handle_timeout_termination"] = handle_timeout_termination
        given = (buffer_size, observation_space, action_space)
        self._set_buffers(buffers, use_threads, self.buffer_size, n_envs, *given, device=device, **kwargs)

    def add(
        self, obs: Any, next_obs: Any, action: NDArray[Any], reward: NDArray[Any], done: NDArray[Any], infos: Any
    ) -> None:
        """Add a step to every buffer."""
        self._call("add", obs, next_obs, action, reward, done, infos)

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> Any:
        """Sample the first buffer."""
        return self._buffers[0].sample(batch_size, env=env)


class DummyVecRolloutBuffer(_FanOut, sb3.RolloutBuffer):
    """A rollout buffer without storage of its own: everything that is added goes to several other buffers. A model
    trains with the first of them.

    As ``rollout_buffer_class`` of a model, with ``buffers`` in ``rollout_buffer_kwargs``. Takes the arguments of
    :class:`DummyVecReplayBuffer` except the two for its own kind of buffers; ``buffers`` are rollout buffers here, and
    ``kwargs`` may have ``gae_lambda`` and ``gamma``.
    """

    _defaults = sb3.RolloutBuffer, sb3.DictRolloutBuffer

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
        # Before the constructor of Stable-Baselines3, which calls reset().
        given = (buffer_size, observation_space, action_space)
        self._set_buffers(buffers, use_threads, buffer_size, n_envs, *given, device=device, **kwargs)
        own = {name: getattr(self._buffers[0], name) for name in ("gae_lambda", "gamma")}
        super().__init__(*given, device=device, n_envs=n_envs, **own)
        del self.generator_ready  # that of the first buffer counts

    def add(
        self, obs: Any, action: Any, reward: Any, episode_start: Any, value: Any, log_prob: Any, **kwargs: Any
    ) -> None:
        """Add a step to every buffer; ``kwargs`` are further arguments of the buffers of sb3-contrib."""
        self._call("add", obs, action, reward, episode_start, value, log_prob, **kwargs)

    def compute_returns_and_advantage(self, last_values: th.Tensor, dones: NDArray[np.bool_]) -> None:
        """Compute returns and advantages in every buffer."""
        self._call("compute_returns_and_advantage", last_values=last_values, dones=dones)

    def get(self, batch_size: int | None = None) -> Generator[Any, None, None]:
        """Iterate over the rollout of the first buffer once, in random order."""
        return self._buffers[0].get(batch_size)  # type: ignore[no-any-return]
