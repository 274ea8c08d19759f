"""``CompressedReplayBuffer``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.buffers import DictReplayBuffer
from stable_baselines3.common.preprocessing import get_obs_shape
from stable_baselines3.common.vec_env import VecNormalize

from sb3_extra_buffers.compressed.arranging import PerStep
from sb3_extra_buffers.compressed.base import refuse_unknown
from sb3_extra_buffers.compressed.options import StorageOptions
from sb3_extra_buffers.compressed.prefetch import check_prefetch
from sb3_extra_buffers.compressed.refused import places_of
from sb3_extra_buffers.compressed.sampling import SampledTransitions
from sb3_extra_buffers.compressed.spaces import NO_KEY, check_kind, hollow
from sb3_extra_buffers.compressed.turns import in_turn
from sb3_extra_buffers.errors import BufferStateError, HeapFullError, ObservationError


class CompressedReplayBuffer(SampledTransitions):
    """
    A ``ReplayBuffer`` that stores observations compressed. What it returns is bit-equal to what Stable-Baselines3's
    own buffer returns for the same seed.

    A next observation that is the observation of the following step is stored once.

    :param buffer_size: Max number of element in the buffer
    :param observation_space: Observation space
    :param action_space: Action space
    :param device: PyTorch device
    :param n_envs: Number of parallel environments
    :param optimize_memory_usage: Store one observation per step, as Stable-Baselines3 does. Together with
        ``handle_timeout_termination``, which Stable-Baselines3 cannot combine, it works as without: next observations
        are shared anyway, and exact.
    :param handle_timeout_termination: Handle timeout termination (due to timelimit)
        separately and treat the task as infinite horizon task.
    :param dtypes: The dtype to store, if it shall be narrower than that of the space: a dtype, or
        ``{"elem_type": dtype}``. A value that it cannot hold is an error. By default, the space decides.
    :param normalize_images: Divide observations by 255 and return them as float32
    :param compression_method: A codec such as ``"zstd-3"``, ``"lz4-block/0"`` or ``"rle-jit"``. ``"auto"`` chooses one
        among the installed by the space and the first observations; ``memory_report()`` and the log tell which.
        For Dict spaces also by key: ``{"image": "zstd-3", "vec": "none"}``.
    :param compression_kwargs: Parameters of the codec, for instance ``{"level": 3}``
    :param decompression_kwargs: Accepted for old scripts, without effect
    :param output_dtype: ``"raw"`` returns observations in the dtype of the space, ``"float"`` as float32
    :param heap: Where compressed observations live: ``"memory"``; ``"ring"``, which keeps to a budget and drops the
        oldest transitions; ``"mmap"``, a file for what is larger than memory
    :param heap_kwargs: What the heap takes: ``capacity`` in bytes, and for ``"mmap"`` a ``folder``
    :param threads: How many threads decode a batch. By default, as many as pay.
    :param layout: ``"frames"`` stores each frame of stacked images once, as what changed since the frame before it;
        ``"cells"`` each observation by itself. ``"auto"`` stores images as frames and finds out how they are stacked;
        those that are not become cells if that is smaller.
    :param prefer: For frames: ``"speed"``, ``"balanced"`` or ``"memory"``
    :param prefetch: Draw each batch when the one before it is handed out, and read it in a thread of its own while the
        model trains. What is added in between can be drawn one batch later.
    """

    #: Whether Stable-Baselines3's class can store one observation per step.
    _can_optimize = True
    #: Whether Stable-Baselines3's class adds as ``ReplayBuffer`` does.
    _adds_plainly = True
    #: Why batches cannot be read ahead; empty if they can.
    _prefetch_obstacle = ""

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        device: th.device | str = "auto",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,
        handle_timeout_termination: bool = True,
        dtypes: Any = None,
        normalize_images: bool = False,
        compression_method: Any = "auto",
        compression_kwargs: Mapping[str, Any] | None = None,
        decompression_kwargs: Mapping[str, Any] | None = None,
        output_dtype: str = "raw",
        *,
        heap: str = "memory",
        heap_kwargs: Mapping[str, Any] | None = None,
        threads: int | None = None,
        layout: str = "auto",
        prefer: str = "speed",
        prefetch: bool = False,
        **kwargs: Any,
    ) -> None:
        name = type(self).__name__
        refuse_unknown(type(self), kwargs)
        check_kind(name, observation_space, is_dict=isinstance(self, DictReplayBuffer))
        one_per_step = optimize_memory_usage and self._can_optimize and not handle_timeout_termination
        obstacle = self._prefetch_obstacle
        if one_per_step:
            obstacle = "with optimize_memory_usage, and without timeouts, next observations are looked up by themselves"
        if not obstacle and type(self)._get_samples is not SampledTransitions._get_samples:
            obstacle = f"{name} has a _get_samples() of its own, which is asked when a batch is needed"
        check_prefetch(name, prefetch, obstacle)
        super().__init__(
            buffer_size,
            hollow(observation_space),
            action_space,
            device=device,
            n_envs=n_envs,
            optimize_memory_usage=one_per_step,
            handle_timeout_termination=handle_timeout_termination,
            **kwargs,
        )
        self.observation_space = observation_space
        self.obs_shape = get_obs_shape(observation_space)  # type: ignore[assignment]
        self._options = StorageOptions(
            dtypes=dtypes,
            normalize_images=normalize_images,
            compression_method=compression_method,
            compression_kwargs=compression_kwargs,
            decompression_kwargs=decompression_kwargs,
            output_dtype=output_dtype,
            heap=heap,
            heap_kwargs=heap_kwargs,
            threads=threads,
            layout=layout,
            prefer=prefer,
            prefetch=prefetch,
        )
        per_step = PerStep.REWRITTEN if one_per_step else PerStep.TRANSITIONS
        self._storage = self._new_storage(observation_space, self.buffer_size, n_envs, per_step)
        self.observations = self._alone(self._storage.observations)
        if not one_per_step:
            self.next_observations = self._alone(self._storage.next_observations)

    @in_turn
    def add(
        self,
        obs: Any,
        next_obs: Any,
        action: NDArray[Any],
        reward: NDArray[Any],
        done: NDArray[Any],
        infos: list[dict[str, Any]],
    ) -> None:
        # Everything is checked before anything is stored: an error leaves the buffer as it was.
        plain = self._storage.plain
        if plain is None or not (plain.takes(obs) and plain.takes(next_obs)):
            obs, next_obs = self._incoming("obs", obs), self._incoming("next_obs", next_obs)
        action = self._row("action", action, self.action_dim)
        reward, done = self._row("reward", reward), self._row("done", done)
        timeouts = self._timeouts_of(infos) if self.handle_timeout_termination else None
        is_plain = self._adds_plainly and not self.optimize_memory_usage
        if is_plain:
            self._storage.refuse_too_large(next_obs)
        position, was_full, was_torn = self.pos, self.full, self._is_torn
        before = places_of(self._storage, position) if was_full else None
        # Only a heap can fail from here on, in the middle of a row: what that row held before must not be sampled.
        self._is_torn = was_full
        try:
            if is_plain:
                self._add(obs, next_obs, action, reward, done, timeouts)
            else:
                super().add(obs, next_obs, action, reward, done, infos)
        except HeapFullError:
            if before is not None and before == places_of(self._storage, position):
                self._is_torn = was_torn
            raise
        if self._storage.has_evicted(position):
            self.pos, self.full = position, was_full
            self._refuse_row()
        self._is_torn = False

    def _add(
        self,
        obs: NDArray[Any],
        next_obs: NDArray[Any],
        action: NDArray[Any],
        reward: NDArray[Any],
        done: NDArray[Any],
        timeouts: list[Any] | bool | None,
    ) -> None:
        """What ``ReplayBuffer.add`` does, without its copies of all arguments: a store keeps none of them."""
        position = self.pos
        self._storage.write_step(position, obs, next_obs)
        self.actions[position] = action.reshape(self.n_envs, self.action_dim)
        self.rewards[position] = reward
        self.dones[position] = done
        if timeouts is not None:
            self.timeouts[position] = timeouts
        self.pos += 1
        if self.pos == self.buffer_size:
            self.full = True
            self.pos = 0

    @in_turn
    def sample(self, batch_size: int, env: VecNormalize | None = None) -> Any:
        """
        Sample elements from the buffer.

        :param batch_size: Number of element to sample
        :param env: associated gym VecEnv to normalize the observations/rewards when sampling
        :return: What Stable-Baselines3 returns
        """
        if not self.size():
            self._ahead = None
            hint = "Collect transitions before training; see learning_starts."
            raise BufferStateError(type(self).__name__, f"sample {batch_size} transitions", "the buffer is empty", hint)
        self._is_sampling = True
        try:
            return self._delivered(self._sample(batch_size, env))
        finally:
            self._is_sampling = False

    @in_turn
    def reset(self) -> None:
        """Forget all transitions. Their memory is used again."""
        super().reset()
        self._ahead, self._is_torn = None, False
        self._storage.clear()

    @in_turn
    def reconstruct_obs(self, idx: int, env_idx: int = 0) -> Any:
        """
        One observation, decoded; for a Dict space, a dictionary.

        :param idx: position in the buffer
        :param env_idx: number of the environment
        """
        return self._decoded(self._storage.observations, idx, env_idx)

    @in_turn
    def reconstruct_nextobs(self, idx: int, env_idx: int = 0) -> Any:
        """
        One next observation, decoded; for a Dict space, a dictionary.

        :param idx: position in the buffer
        :param env_idx: number of the environment
        """
        if self.optimize_memory_usage:
            return self.reconstruct_obs((idx + 1) % self.buffer_size, env_idx)
        return self._decoded(self._storage.next_observations, idx, env_idx)

    def _arguments(self) -> dict[str, Any]:
        return {
            **super()._arguments(),
            "buffer_size": self.buffer_size * self.n_envs,
            "optimize_memory_usage": self.optimize_memory_usage,
            "handle_timeout_termination": self.handle_timeout_termination,
        }

    def _timeouts_of(self, infos: Any) -> list[Any] | bool:
        """Whether each environment ended because of a time limit; ``False`` if none did, as at most steps."""
        if isinstance(infos, (list, tuple)) and len(infos) == self.n_envs:
            try:
                for info in infos:
                    if info.get("TimeLimit.truncated", False):
                        return [info.get("TimeLimit.truncated", False) for info in infos]
                return False
            except AttributeError:
                pass  # what has no get() is no dictionary
        expected = f"a dictionary for each of {self.n_envs} environments"
        raise ObservationError(type(self).__name__, "infos", repr(infos), expected)

    def _refuse_row(self) -> None:
        heap = self._storage.heap
        assert heap is not None
        together = "The environments" if NO_KEY in self._storage.observations else "The keys"
        hint = f"{together} of one step must fit together: give the heap a larger capacity."
        raise HeapFullError(self._options.heap, heap.capacity + 1, heap.capacity, hint, never_fits=True)

    def _decoded(self, arrays: dict[str, Any], idx: int, env_idx: int) -> Any:
        return self._alone({key: array[idx, env_idx] for key, array in arrays.items()})
