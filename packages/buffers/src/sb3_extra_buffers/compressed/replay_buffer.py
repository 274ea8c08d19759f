"""Replay buffers that store observations compressed."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.buffers import DictReplayBuffer, NStepReplayBuffer, ReplayBuffer
from stable_baselines3.common.preprocessing import get_obs_shape
from stable_baselines3.common.type_aliases import DictReplayBufferSamples, ReplayBufferSamples
from stable_baselines3.common.vec_env import VecNormalize

from sb3_extra_buffers.arrays.indexing import CellNumbers
from sb3_extra_buffers.checkpoints import State
from sb3_extra_buffers.compressed.base import BaseCompressedBuffer, locked
from sb3_extra_buffers.compressed.locking import forks_wait
from sb3_extra_buffers.compressed.prefetch import Batch, Pairs, Worker
from sb3_extra_buffers.compressed.storage import NO_KEY, PerStep
from sb3_extra_buffers.compressed.transitions import SequenceSamples, sequence_samples
from sb3_extra_buffers.errors import BufferStateError, HeapFullError, ObservationError, ParameterError

#: Assigning an array to a row takes a third of the time of assigning a number.
_NO_TIMEOUT = np.zeros(1, np.float32)


class CompressedReplayBuffer(BaseCompressedBuffer, ReplayBuffer):
    """A ``ReplayBuffer`` that stores observations compressed. Its samples are bit-equal to those of Stable-Baselines3's
    own buffer for the same seed.

    A next observation that equals the observation of the following step is stored once.

    :param buffer_size: Max number of element in the buffer
    :param observation_space: Observation space
    :param action_space: Action space
    :param device: PyTorch device
    :param n_envs: Number of parallel environments
    :param optimize_memory_usage: Store one observation per step, as Stable-Baselines3 does. Together with
        ``handle_timeout_termination``, which Stable-Baselines3 does not allow, it has no effect: next observations are
        shared anyway, and exact.
    :param handle_timeout_termination: Handle timeout termination (due to timelimit)
        separately and treat the task as infinite horizon task.
    :param dtypes: A narrower dtype to store: a dtype, or ``{"elem_type": dtype}``. Values that it cannot hold raise an
        error. Default: the dtype of the space.
    :param normalize_images: Divide observations by 255 and return them as float32
    :param compression_method: A codec such as ``"zstd-3"``, ``"lz4-block/0"`` or ``"rle-jit"``. ``"auto"`` chooses one
        of the installed codecs by the space and the first observations; ``memory_report()`` and the log say which.
        For Dict spaces also by key: ``{"image": "zstd-3", "vec": "none"}``.
    :param compression_kwargs: Parameters of the codec, for instance ``{"level": 3}``
    :param decompression_kwargs: Accepted for old scripts, without effect
    :param output_dtype: ``"raw"`` returns observations in the dtype of the space, ``"float"`` as float32
    :param heap: Where compressed observations are stored: ``"memory"``; ``"ring"``, which has a limit and evicts the
        oldest transitions; ``"mmap"``, a file for buffers larger than memory; or a heap of another plugin
    :param heap_kwargs: Parameters of the heap: ``capacity`` in bytes, and for ``"mmap"`` a ``folder``
    :param threads: Threads used to decode a batch. Default: chosen automatically.
    :param layout: ``"frames"`` stores each frame of stacked images once, as a patch on the frame before it;
        ``"cells"`` stores each observation by itself. ``"auto"`` finds out from the first observations how frames are
        stacked, and which of the two suits ``prefer``.
    :param prefer: What the automatic choice looks for: ``"balanced"``, the smallest product of memory and sampling
        time; ``"speed"``, the least memory that is sampled as fast as Stable-Baselines3's own buffer; ``"memory"``, the
        least memory. Default: ``"balanced"``; with ``layout="frames"``, whose chunks go through a codec for
        ``"balanced"`` and ``"memory"``, it is ``"speed"``.
    :param prefetch: Draw each batch when the one before it is returned, and read it in a thread while the model
        trains. Transitions that are added in between can be drawn one batch later.
    :param overlap: Return ``observations`` and ``next_observations`` of stacked frames as two overlapping views of one
        array, on the CPU and if each next observation of the batch is its observation shifted by one frame. The values
        are the same, and fewer bytes are written. The two share memory and are not contiguous, which no model of
        Stable-Baselines3 or sb3-contrib notices; leave it out if your code writes into batches.
    """

    #: Whether Stable-Baselines3's class can store one observation per step.
    _can_optimize = True
    #: Why batches cannot be read ahead; empty if they can.
    _prefetch_obstacle = ""
    #: Whether a sample has the observations and the next observations of the same rows.
    _reads_together = True
    _samples_type: type[Any] = ReplayBufferSamples
    overlap = False
    #: Position, evicted cells, and the number of steps that the heap held then.
    _kept: tuple[tuple[int, int], int] | None = None
    #: Whether the oldest step is partly overwritten, because a new one could not be written completely.
    _is_torn = False
    #: The next batch, if it was drawn ahead.
    _ahead: Batch | None = None

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
        prefer: str | None = None,
        prefetch: bool = False,
        overlap: bool = False,
        **kwargs: Any,
    ) -> None:
        one_per_step = optimize_memory_usage and self._can_optimize and not handle_timeout_termination
        obstacle = self._prefetch_obstacle
        if one_per_step:
            obstacle = "with optimize_memory_usage, and without timeouts, next observations are looked up by themselves"
        if not obstacle and type(self)._get_samples is not CompressedReplayBuffer._get_samples:
            obstacle = f"{type(self).__name__} has a _get_samples() of its own, which is asked when a batch is needed"
        self._take_options(locals(), obstacle)
        if not isinstance(overlap, bool):
            raise ParameterError(type(self).__name__, "overlap", overlap, "it must be True or False")
        self.overlap = overlap
        kwargs |= {"optimize_memory_usage": one_per_step, "handle_timeout_termination": handle_timeout_termination}
        super().__init__(buffer_size, _hollow(observation_space), action_space, device=device, n_envs=n_envs, **kwargs)
        self.observation_space = observation_space
        self.obs_shape = get_obs_shape(observation_space)  # type: ignore[assignment]
        with forks_wait():
            self._storage = self._new_storage(self._per_step())
        self._place_arrays()

    def _per_step(self) -> PerStep:
        return PerStep.REWRITTEN if self.optimize_memory_usage else PerStep.TRANSITIONS

    def _place_arrays(self) -> None:
        super()._place_arrays()
        if not self.optimize_memory_usage:
            self.next_observations = self._alone(self._storage.next_observations)

    @locked
    def add(
        self,
        obs: Any,
        next_obs: Any,
        action: NDArray[Any],
        reward: NDArray[Any],
        done: NDArray[Any],
        infos: list[dict[str, Any]],
    ) -> None:
        # Everything is checked and converted before anything is stored: an error leaves the buffer as it was.
        storage, position, was_full, was_torn = self._storage, self.pos, self.full, self._is_torn
        if not storage.takes(obs, next_obs):
            obs, next_obs = self._incoming("obs", obs), self._incoming("next_obs", next_obs)
        action = self._row("action", action, self.actions)
        reward, done = self._row("reward", reward, self.rewards), self._row("done", done, self.dones)
        infos, timeouts = self._checked_infos(infos)
        if storage.is_clearing:
            storage.clear()
        if storage.is_bounded and not self.optimize_memory_usage:
            storage.refuse_too_large(next_obs)
        before = storage.positions_of(position) if was_full and storage.is_strict else None
        step = obs, next_obs, action, reward, done, timeouts, infos
        try:
            self._store(position, *step)
        except HeapFullError:
            if before is not None and before == storage.positions_of(position):
                self._is_torn = was_torn
            raise
        except BaseException:
            if self.optimize_memory_usage and self.pos == position:
                self._store(position, *step)  # the newest step may have its next observation already
            raise

    def _store(
        self, position: int, obs: Any, next_obs: Any, action: Any, reward: Any, done: Any, timeouts: Any, infos: Any
    ) -> None:
        """Write a step that was checked, and make it visible at the end."""
        storage, was_full, following = self._storage, self.full, (position + 1) % self.buffer_size
        evicted = storage.evictions if storage.is_bounded else 0
        # A heap or an interrupt can stop this in the middle: the step that it replaces must not be sampled.
        self._is_torn = was_full or (self.optimize_memory_usage and not following)
        if self.optimize_memory_usage:
            storage.write_step(position, obs, None)
            storage.write_step(following, next_obs, None)
        else:
            storage.write_step(position, obs, next_obs)
        if storage.is_bounded and storage.evictions != evicted and not storage.holds(position):
            self._refuse_row()
        self.actions[position] = action
        self.rewards[position] = reward
        self.dones[position] = done
        if self.handle_timeout_termination:
            self.timeouts[position] = _NO_TIMEOUT if timeouts is False else timeouts
        self._publish(position, following, done, infos)

    @locked
    def sample(self, batch_size: int, env: VecNormalize | None = None) -> Any:
        """Sample elements from the buffer.

        :param batch_size: Number of element to sample
        :param env: associated gym VecEnv to normalize the observations/rewards when sampling
        :return: What Stable-Baselines3 returns
        """
        if not self.size():
            self._ahead = None
            hint = "Collect transitions before training; see learning_starts."
            raise BufferStateError(type(self).__name__, f"sample {batch_size} transitions", "the buffer is empty", hint)
        return self._delivered(self._sample, batch_size, env)

    @locked
    def sample_sequences(
        self, batch_size: int, length: int, burn_in: int = 0, env: VecNormalize | None = None
    ) -> SequenceSamples:
        """Sample sequences of single steps, for recurrent models. Each is of one environment and one episode, and does
        not cross the position at which the buffer is written. Its first step after the burn-in is drawn uniformly.

        :param batch_size: Number of sequences
        :param length: Number of steps to train on; fewer if the episode ends before, see ``mask``
        :param burn_in: Number of steps before those, to warm up a recurrent state
        :param env: associated gym VecEnv to normalize the observations/rewards when sampling
        """
        return self._delivered(sequence_samples, self, batch_size, length, burn_in, env)  # type: ignore[no-any-return]

    @locked
    def reset(self) -> None:
        """Forget all transitions. Their memory is used again."""
        # One statement, as in _publish.
        self.pos, self.full, self._is_torn, self._ahead, self._storage.is_clearing = 0, False, False, None, True
        super().reset()
        self._storage.clear()

    @locked
    def reconstruct_obs(self, idx: int, env_idx: int = 0) -> Any:
        """One observation, decoded; for a Dict space, a dictionary.

        :param idx: position in the buffer
        :param env_idx: number of the environment
        """
        return self._alone({key: array[idx, env_idx] for key, array in self._storage.observations.items()})

    @locked
    def reconstruct_nextobs(self, idx: int, env_idx: int = 0) -> Any:
        """One next observation, decoded. The arguments are those of :meth:`reconstruct_obs`."""
        if self.optimize_memory_usage:
            return self.reconstruct_obs((idx + 1) % self.buffer_size, env_idx)
        return self._alone({key: array[idx, env_idx] for key, array in self._storage.next_observations.items()})

    def _arguments(self) -> dict[str, Any]:
        return {
            **super()._arguments(),
            "buffer_size": self.buffer_size * self.n_envs,
            "optimize_memory_usage": self.optimize_memory_usage,
            "handle_timeout_termination": self.handle_timeout_termination,
            "overlap": self.overlap,
        }

    def _checked_infos(self, infos: Any) -> tuple[Any, Any]:
        """The infos, and whether each environment ended because of a time limit."""
        if not self.handle_timeout_termination and not getattr(self, "copy_info_dict", False):
            return infos, False
        try:
            infos = infos if isinstance(infos, (list, tuple)) else list(infos)
            timeouts: Any = False
            for info in infos:
                if info.get("TimeLimit.truncated", False) is not False:
                    timeouts = [info.get("TimeLimit.truncated", False) for info in infos]
                    break  # at most steps, none is
            is_complete = len(infos) == self.n_envs
        except (AttributeError, TypeError):  # what has no get() is no dictionary
            is_complete = False
        if not is_complete:
            expected = f"a dictionary for each of {self.n_envs} environments"
            raise ObservationError(type(self).__name__, "infos", repr(infos), expected)
        if not self.handle_timeout_termination or timeouts is False:
            return infos, timeouts
        return infos, self._row("infos['TimeLimit.truncated']", timeouts, self.timeouts)

    def _publish(self, position: int, following: int, done: NDArray[Any], infos: Any) -> None:
        """Make a step visible that is written completely. Python handles signals between statements only."""
        del position, done, infos
        self.pos, self.full, self._is_torn = following, self.full or not following, False

    def _refuse_row(self) -> None:
        heap = self._storage.heap
        assert heap is not None  # it has evicted
        together = "The environments" if NO_KEY in self._storage.observations else "The keys"
        hint = f"{together} of one step must fit together: give the heap a larger capacity."
        raise HeapFullError(self._options.heap, heap.capacity + 1, heap.capacity, hint, never_fits=True)

    # Sampling.

    def _sample(self, batch_size: int, env: VecNormalize | None) -> Any:
        if self._storage.worker is not None:
            return self._sample_ahead(batch_size, env, self._storage.worker)
        # The shortest way, unless a subclass has a _get_samples() of its own.
        is_own = type(self)._get_samples is CompressedReplayBuffer._get_samples
        if is_own and self._reads_together and not self.optimize_memory_usage:
            batch = self._batch(self._draw_steps(batch_size))
            return self._samples(batch, self._storage.read_both(batch.cells, self._may_overlap), env)
        if self._kept_rows() == self.size():
            return super().sample(batch_size, env)
        return self._get_samples(self._draw_steps(batch_size), env=env)

    def _sample_ahead(self, batch_size: int, env: VecNormalize | None, worker: Worker) -> Any:
        """Return the batch that was drawn the last time, and draw the next one: random numbers depend on no thread."""
        batch, self._ahead = self._ahead, None
        if batch is None or len(batch.cells) != batch_size:
            batch = self._batch(self._draw_steps(batch_size))
        found = batch.observations
        if isinstance(found, Future):
            found = worker.finish(found)
        elif found is None:
            found = self._storage.read_both(batch.cells, self._may_overlap)
        if self._whole_rows():
            following = self._batch(self._draw_steps(batch_size))
            following.observations = worker.submit(self._storage.read_both, following.cells, self._may_overlap)
            self._ahead = following
        return self._samples(batch, found, env)

    @locked
    def _get_samples(self, batch_inds: NDArray[Any], env: VecNormalize | None = None) -> Any:
        """The same as in Stable-Baselines3, with observations and next observations read together."""
        if not self._reads_together or self.optimize_memory_usage:
            return super()._get_samples(batch_inds, env)
        # Negative numbers count from the end; unknown ones are an IndexError.
        batch = self._batch(CellNumbers((self.buffer_size,))[np.asarray(batch_inds)])
        return self._samples(batch, self._storage.read_both(batch.cells, self._may_overlap), env)

    def _batch(self, rows: NDArray[Any]) -> Batch:
        """Draw an environment for each step, and look up what is not compressed."""
        cells = rows.astype(np.int64, copy=False)  # 32 bits on Windows, before numpy 2
        if self.n_envs > 1:  # for one environment, numpy draws no random number
            cells = cells * self.n_envs
            cells += np.random.randint(0, high=self.n_envs, size=(len(rows),))
        # Only use dones that are not due to timeouts
        dones = self.dones.take(cells) * (1 - self.timeouts.take(cells))
        actions = self.actions.reshape(-1, self.action_dim)[cells]
        return Batch(cells, actions, self.rewards.take(cells).reshape(-1, 1), dones.reshape(-1, 1))

    def _samples(self, batch: Batch, pairs: Pairs, env: VecNormalize | None) -> Any:
        """The samples of a batch, normalized with the current statistics."""
        obs, next_obs = pairs[NO_KEY] if NO_KEY in pairs else ({key: pairs[key][n] for key in pairs} for n in (0, 1))
        return self._samples_type(
            observations=self._to_tensors(self._normalize_obs(obs, env)),
            actions=self.to_torch(batch.actions),
            next_observations=self._to_tensors(self._normalize_obs(next_obs, env)),
            dones=self.to_torch(batch.dones),
            rewards=self.to_torch(self._normalize_reward(batch.rewards, env)),
        )

    @property
    def _may_overlap(self) -> bool:
        # To another device, each view would be made contiguous first.
        return self.overlap and self.device.type == "cpu"

    def _to_tensors(self, observations: Any) -> Any:
        if isinstance(observations, dict):
            return {key: self.to_torch(part) for key, part in observations.items()}
        return self.to_torch(observations)

    def _draw_steps(self, batch_size: int) -> NDArray[Any]:
        """Draw among the steps that can be sampled. If all can, these are the steps that Stable-Baselines3 draws."""
        kept = self._whole_rows()
        if not kept:
            found, hint = "no step is left that could be stored completely", "Add a transition first."
            raise BufferStateError(type(self).__name__, f"sample {batch_size} transitions", found, hint)
        drawn = np.random.randint(0, kept, size=batch_size)
        return drawn if kept == self.size() else (self.pos - kept + drawn) % self.buffer_size

    def _whole_rows(self) -> int:
        """Number of steps, counted back from the newest, that can be sampled."""
        kept = self._kept_rows()
        if self.full and self.optimize_memory_usage:
            # The oldest step holds the next observation of the newest, and if that is torn, so does the one after it.
            return min(kept, self.buffer_size - 1 - self._is_torn)
        return kept

    def _kept_rows(self) -> int:
        """Number of steps, counted back from the newest, that are complete."""
        kept, evicted = self.size(), self._storage.evicted_cells
        if evicted:
            if self._kept is None or self._kept[0] != (self.pos, evicted):
                self._kept = (self.pos, evicted), self._storage.held_before(self.pos, kept)
            kept = self._kept[1]
        return min(kept, self.size() - 1) if self._is_torn else kept

    def _state(self) -> State:
        found = super()._state()
        found.facts["has_ahead"] = self._ahead is not None
        return found if self._ahead is None else found.put("ahead", self._ahead.state())

    def _restore(self, state: State) -> None:
        super()._restore(state)
        state.part("own").number("pos", 0, self.buffer_size - 1)  # the position of the next step
        if state.fact("has_ahead", bool):
            self._ahead = Batch.from_state(self, state.part("ahead"))

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        ahead = state.pop("_ahead", None)
        if ahead is not None:
            found = ahead.state()
            state["ahead"] = found.facts, found.arrays
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        ahead = state.pop("ahead", None)
        super().__setstate__(state)
        if ahead is not None:
            self._ahead = Batch.from_state(self, State(*ahead))


class CompressedDictReplayBuffer(CompressedReplayBuffer, DictReplayBuffer):
    """A ``DictReplayBuffer`` that stores observations compressed, each key with its own dtype and codec.

    Takes the arguments of :class:`CompressedReplayBuffer`; ``compression_method`` and ``dtypes`` may be given by key.
    """

    _can_optimize = False
    _samples_type: type[Any] = DictReplayBufferSamples


class CompressedNStepReplayBuffer(CompressedReplayBuffer, NStepReplayBuffer):
    """An ``NStepReplayBuffer`` that stores observations compressed.

    Takes the arguments of :class:`CompressedReplayBuffer`, and ``n_steps`` and ``gamma``. Stable-Baselines3 sets these
    two only for its own class, so give them in ``replay_buffer_kwargs``.
    """

    _variant = "NStep"
    _can_optimize = False
    _reads_together = False
    _prefetch_obstacle = "n-step returns are computed from several steps when they are sampled"

    def _arguments(self) -> dict[str, Any]:
        return {**super()._arguments(), "n_steps": self.n_steps, "gamma": self.gamma}


def _hollow(space: spaces.Space[Any]) -> spaces.Space[Any]:
    """The same space with empty observations.

    Constructors of Stable-Baselines3 allocate arrays for all observations, which would be thrown away at once. For one
    million Atari transitions that is 56 GB, which most machines refuse to allocate.
    """
    if isinstance(space, spaces.Dict):
        return spaces.Dict({key: _hollow(part) for key, part in space.spaces.items()})
    return spaces.Box(0, 1, shape=(0,), dtype=np.dtype(space.dtype or np.float32).type)
