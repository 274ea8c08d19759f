"""Rollout buffers that store observations compressed."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.buffers import DictRolloutBuffer, RolloutBuffer

from sb3_extra_buffers.checkpoints import State
from sb3_extra_buffers.compressed.base import BaseCompressedBuffer, locked
from sb3_extra_buffers.compressed.locking import forks_wait
from sb3_extra_buffers.compressed.prefetch import Worker, prefetched, read_rows
from sb3_extra_buffers.errors import BufferStateError, HeapFullError, ObservationError
from sb3_extra_buffers.memory import publish


class CompressedRolloutBuffer(BaseCompressedBuffer, RolloutBuffer):
    """
    A ``RolloutBuffer`` that stores observations compressed. Its batches are bit-equal to those of Stable-Baselines3's
    own buffer for the same seed.

    :param buffer_size: Max number of element in the buffer
    :param observation_space: Observation space
    :param action_space: Action space
    :param device: PyTorch device
    :param gae_lambda: Factor for trade-off of bias vs variance for Generalized Advantage Estimator
        Equivalent to classic advantage when set to 1.
    :param gamma: Discount factor
    :param n_envs: Number of parallel environments
    :param dtypes: See :class:`CompressedReplayBuffer`, also for all following arguments
    :param heap: Where compressed observations are stored. A rollout must fit as a whole.
    :param prefetch: Read the next batch in a thread while the model trains on the one before
    """

    #: Why batches cannot be read ahead; empty if they can.
    _prefetch_obstacle = ""
    #: What to do if a rollout does not fit.
    _room_hint = "Give the heap a larger capacity than for {fitted} of {steps} steps, or use 'memory'."

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        device: th.device | str = "auto",
        gae_lambda: float = 1,
        gamma: float = 0.99,
        n_envs: int = 1,
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
        prefer: str | None = None,
        prefetch: bool = False,
        **kwargs: Any,
    ) -> None:
        self._take_options(locals(), self._prefetch_obstacle)
        # Before the constructor of Stable-Baselines3, which calls reset().
        self.observation_space, self.buffer_size, self.n_envs = observation_space, buffer_size, n_envs
        with forks_wait():
            self._storage = self._new_storage(self._per_step())
        kwargs |= {"device": device, "gae_lambda": gae_lambda, "gamma": gamma, "n_envs": n_envs}
        super().__init__(buffer_size, observation_space, action_space, **kwargs)

    def _place_arrays(self) -> None:
        super()._place_arrays()
        if self.generator_ready:  # get() has flattened all arrays
            arrays: dict[str, Any] = dict(self._storage.observations)
            self.observations = self._alone({key: self.swap_and_flatten(part) for key, part in arrays.items()})

    @locked
    def reset(self) -> None:
        """Forget the rollout."""
        # Stable-Baselines3 replaces one array after the other; a twin collects them, so that no interrupt splits this.
        twin, shape = object.__new__(type(self)), self.obs_shape
        vars(twin).update(vars(self))
        # It allocates an array for all observations, too; let it be an empty one.
        twin.obs_shape = dict.fromkeys(shape, (0,)) if isinstance(shape, dict) else (0,)
        super(CompressedRolloutBuffer, twin).reset()
        twin._place_arrays()
        twin.obs_shape = shape
        publish((), (), (), [(self, *item) for item in vars(twin).items()] + [(self._storage, "is_clearing", True)])
        self._storage.clear()

    @locked
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
        """Add a step, as in Stable-Baselines3. ``kwargs`` are further arguments of the buffers of sb3-contrib."""
        # Everything is checked before anything is stored: an error leaves the buffer as it was.
        if self.full:
            hint = "Call reset() before the next rollout."
            raise BufferStateError(type(self).__name__, "add a step", "the rollout is complete", hint)
        obs, action = self._incoming("obs", obs), self._row("action", action, self.actions)
        reward = self._row("reward", reward, self.rewards)
        episode_start = self._row("episode_start", episode_start, self.episode_starts)
        value, log_prob = self._estimate("value", value), self._estimate("log_prob", log_prob)
        if self._storage.is_clearing:
            self._storage.clear()
        try:
            super().add(obs, action, reward, episode_start, value, log_prob, **kwargs)
        finally:
            self.full = self.pos == self.buffer_size  # an interrupt may have come between the two
        if self._storage.evicted_cells:
            self._refuse_evictions()

    def get(self, batch_size: int | None = None) -> Generator[Any, None, None]:
        """Go through the rollout once, in random order.

        :param batch_size: Number of steps per batch; all at once if left out
        """
        if not self.full:
            found = f"{self.pos} of {self.buffer_size} steps of the rollout are there"
            raise BufferStateError(type(self).__name__, "get batches", found, "Collect the rest first.")
        batches, worker = super().get(batch_size), self._storage.worker
        batches = batches if self.generator_ready else self._flattened_at_once(batches)
        return batches if worker is None else self._get_ahead(batches, worker)

    def _flattened_at_once(self, batches: Generator[Any, None, None]) -> Generator[Any, None, None]:
        """The same batches. If an interrupt comes while Stable-Baselines3 flattens its arrays, none stays flat."""
        before = list(vars(self).items())
        try:
            first = next(batches)
        except BaseException:
            if not self.generator_ready:
                publish((), (), (), [(self, *item) for item in before])
                self._place_arrays()
            raise
        yield first
        yield from batches

    @locked
    def reconstruct_obs(self, idx: int) -> Any:
        """One observation as a tensor; for a Dict space, a dictionary of tensors.

        :param idx: position among all steps, all steps of the first environment first, as in ``get``
        """
        env, step = divmod(int(idx), self.buffer_size)
        return self._alone({key: self.to_torch(part[step, env]) for key, part in self._storage.observations.items()})

    def _arguments(self) -> dict[str, Any]:
        return {**super()._arguments(), "gae_lambda": self.gae_lambda, "gamma": self.gamma}

    def _restore(self, state: State) -> None:
        super()._restore(state)
        # The position of the next step: past the last one only if the rollout is complete.
        state.part("own").number("pos", 0, self.buffer_size if self.full else self.buffer_size - 1)
        self._place_arrays()

    def _estimate(self, argument: str, value: Any) -> th.Tensor:
        if not isinstance(value, th.Tensor):
            raise ObservationError(type(self).__name__, argument, type(value).__name__, "a tensor")
        return th.from_numpy(self._row(argument, value, self.values))

    @locked
    def _get_samples(self, *args: Any, **kwargs: Any) -> Any:
        return self._delivered(super()._get_samples, *args, **kwargs)

    def _get_ahead(self, batches: Generator[Any, None, None], worker: Worker) -> Generator[Any, None, None]:
        """The same batches, each read while the consumer is busy with the one before it."""
        indices, job, source, writes = self._next_indices(batches), None, self.observations, worker.writes
        while indices is not None:
            if job is None or source is not self.observations or writes != worker.writes:
                rows = read_rows(self.observations, indices)  # the first batch, or the arrays were written to since
            else:
                rows = worker.finish(job)
            following, source, writes = self._next_indices(batches), self.observations, worker.writes
            job = None if following is None else worker.submit(read_rows, source, following)
            yield self._samples_of(indices, rows)
            indices = following

    def _next_indices(self, batches: Generator[Any, None, None]) -> NDArray[Any] | None:
        """The indices of Stable-Baselines3's next batch."""
        # In the instance, so that it overrides methods of subclasses, too.
        self.__dict__["_get_samples"] = lambda indices: indices
        try:
            return next(batches, None)
        finally:
            del self.__dict__["_get_samples"]

    @locked
    def _samples_of(self, indices: NDArray[Any], rows: Any) -> Any:
        """A batch of Stable-Baselines3, from observations that were read ahead."""
        observations: Any = self.observations
        self.observations = prefetched(observations, indices, rows)
        try:
            return self._get_samples(indices)
        finally:
            self.observations = observations

    def _refuse_evictions(self) -> None:
        heap = self._storage.heap
        assert heap is not None
        hint = self._room_hint.format(fitted=self.pos - 1, steps=self.buffer_size)
        needed = heap.live + heap.evicted.nbytes
        self.reset()
        raise HeapFullError(self._options.heap, needed, heap.capacity, f"A rollout must fit as a whole. {hint}")


class CompressedDictRolloutBuffer(CompressedRolloutBuffer, DictRolloutBuffer):
    """A ``DictRolloutBuffer`` that stores observations compressed, each key with its own dtype and codec.

    Takes the arguments of :class:`CompressedRolloutBuffer`; ``compression_method`` and ``dtypes`` may be given by key.
    """
