"""Replay buffers that draw transitions in proportion to their priorities."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecNormalize

from sb3_extra_buffers.checkpoints import State, StateError
from sb3_extra_buffers.compressed.base import locked
from sb3_extra_buffers.compressed.replay_buffer import CompressedDictReplayBuffer, CompressedReplayBuffer
from sb3_extra_buffers.compressed.report import MemoryReport
from sb3_extra_buffers.compressed.transitions import check_n_steps, n_step_samples, pairs_at, transitions_at
from sb3_extra_buffers.errors import BufferStateError, ParameterError
from sb3_extra_buffers.sum_tree import SumTree


class PrioritizedReplayBufferSamples(NamedTuple):
    """A sample of a prioritized buffer: the fields of ``ReplayBufferSamples`` first.

    :param weights: importance-sampling weights of shape ``(batch_size, 1)``; the largest of a batch is 1
    :param leaf_nodes_indices: numbers of the transitions, for ``update_priorities``
    """

    observations: th.Tensor
    actions: th.Tensor
    next_observations: th.Tensor
    dones: th.Tensor
    rewards: th.Tensor
    discounts: th.Tensor | None = None
    weights: th.Tensor | None = None
    leaf_nodes_indices: NDArray[np.int64] | None = None


class DictPrioritizedReplayBufferSamples(NamedTuple):
    """The same for Dict observations: the fields of ``DictReplayBufferSamples`` first."""

    observations: dict[str, th.Tensor]
    actions: th.Tensor
    next_observations: dict[str, th.Tensor]
    dones: th.Tensor
    rewards: th.Tensor
    discounts: th.Tensor | None = None
    weights: th.Tensor | None = None
    leaf_nodes_indices: NDArray[np.int64] | None = None


@dataclass(eq=False)
class _Priorities:
    """The priorities of a buffer. A leaf of the tree is a cell; steps are counted from the first one ever added.

    New steps get their priority when the tree is next used, all at once: ``add`` costs nothing.
    """

    tree: SumTree
    #: Importance-sampling exponent now.
    beta: float
    #: Number of steps that were ever added.
    steps: int = 0
    #: Steps before this one have a leaf in the tree.
    filled: int = 0
    #: Steps before this one have no mass.
    first: int = 0
    #: The largest priority seen, before it is raised to the power of alpha.
    largest: float = 1.0


class CompressedPrioritizedReplayBuffer(CompressedReplayBuffer):
    """A replay buffer that draws transitions in proportion to ``priority ** alpha`` (Schaul et al., 2015), and stores
    observations compressed. ``compression_method="none"`` stores them as they are.

    The priority of a transition is its absolute TD error plus ``min_priority``; that of a new transition is the largest
    one seen. ``sample()`` returns :class:`PrioritizedReplayBufferSamples`. The algorithms in
    ``sb3_extra_buffers.prioritized`` use its weights and call :meth:`update_priorities`.

    Takes the first arguments of :class:`CompressedReplayBuffer` and, by keyword, all others.

    :param alpha: How much priorities matter, from 0 (uniform) to 1
    :param beta: Exponent of the importance-sampling weights at the beginning, from 0 (none) to 1
    :param final_beta: The same at the end of training. In between, it is linear in the progress.
    :param min_priority: Added to each TD error, so that every transition can be drawn; positive
    :param n_steps: Number of steps whose rewards are summed up, as in ``NStepReplayBuffer``
    :param gamma: Discount factor of n-step returns
    :param storage: Further arguments of :class:`CompressedReplayBuffer`
    """

    _variant = "Prioritized"
    _prefetch_obstacle = "a batch is drawn by the priorities that training on the batch before it has set"
    _samples_type: type[Any] = PrioritizedReplayBufferSamples
    _transient = ("_priorities", "_can_optimize")

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        device: th.device | str = "auto",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,
        handle_timeout_termination: bool = True,
        *,
        alpha: float = 0.6,
        beta: float = 0.4,
        final_beta: float = 1.0,
        min_priority: float = 1e-6,
        n_steps: int = 1,
        gamma: float = 0.99,
        **storage: Any,
    ) -> None:
        name = type(self).__name__
        for parameter, value in (("alpha", alpha), ("beta", beta), ("final_beta", final_beta)):
            if not _is_number(value) or not 0 <= value <= 1:
                raise ParameterError(name, parameter, value, "it must be from 0 to 1")
        if not _is_number(min_priority) or not 0 < min_priority < math.inf:
            raise ParameterError(name, "min_priority", min_priority, "it must be positive and finite")
        check_n_steps(name, n_steps, gamma)
        if n_steps > 1:
            self._can_optimize = False  # the last next observation of a return is not that of the following step
        own: dict[str, Any] = {
            "optimize_memory_usage": optimize_memory_usage,
            "handle_timeout_termination": handle_timeout_termination,
        }
        super().__init__(buffer_size, observation_space, action_space, device, n_envs, **own, **storage)
        self.alpha, self.beta, self.final_beta = float(alpha), float(beta), float(final_beta)
        self.min_priority, self.n_steps, self.gamma = float(min_priority), int(n_steps), float(gamma)
        self._priorities = _Priorities(SumTree(self.buffer_size * self.n_envs), self.beta)

    @property
    def current_beta(self) -> float:
        """The exponent of the importance-sampling weights now. :meth:`update_priorities` changes it."""
        return self._priorities.beta

    @locked
    def priorities(self) -> NDArray[np.float64]:
        """``priority ** alpha`` of each step and environment, a copy; 0 if a transition cannot be sampled."""
        self._settle()
        return self._priorities.tree.leaves.reshape(self.buffer_size, self.n_envs).copy()

    @locked
    def update_priorities(self, leaf_nodes_indices: Any, td_errors: Any, progress_remaining: float) -> None:
        """Set the priorities of transitions that were sampled. Transitions that were overwritten or evicted since then
        are ignored. If one is given several times, its last TD error counts. An error changes no priority.

        :param leaf_nodes_indices: as they were sampled
        :param td_errors: an absolute TD error for each, an array or a tensor
        :param progress_remaining: from 1 (begin of training) to 0; it sets beta for the next batches
        """
        name, state = type(self).__name__, self._priorities
        numbers, errors = _flat(leaf_nodes_indices), _flat(td_errors)
        if numbers.dtype.kind not in "iu" or errors.dtype.kind not in "fiu" or numbers.shape != errors.shape:
            found = f"{errors.dtype} of shape {errors.shape}"
            expected = f"as many numbers as leaf_nodes_indices, which are {numbers.dtype} of shape {numbers.shape}"
            raise ParameterError(name, "td_errors", found, f"they must be {expected}")
        if not _is_number(progress_remaining) or not math.isfinite(progress_remaining):
            raise ParameterError(name, "progress_remaining", progress_remaining, "it must be a number from 0 to 1")
        # Stable-Baselines3 may do a few steps more than it was asked for: progress ends slightly below 0.
        beta = self.final_beta + min(max(float(progress_remaining), 0.0), 1.0) * (self.beta - self.final_beta)
        first, end = self._settle() * self.n_envs, state.steps * self.n_envs
        if len(numbers) and (numbers.min() < 0 or numbers.max() >= end):
            hint = "Use the leaf_nodes_indices of a sample of this buffer."
            unknown = numbers[(numbers < 0) | (numbers >= end)]
            raise ParameterError(name, "leaf_nodes_indices", unknown[:5], f"there are {end} transitions", hint)
        errors = errors.astype(np.float64)
        if len(errors) and not errors.min() >= 0:
            hint = "NaN means that training has diverged." if np.isnan(errors).any() else "Use numpy.abs()."
            raise ParameterError(name, "td_errors", errors[~(errors >= 0)][:5], "they must be absolute values", hint)
        priorities = (errors + self.min_priority) ** self.alpha
        if len(errors) and not (np.isfinite(errors).all() and priorities.max() <= state.tree.limit):
            allowed = f"priorities must be finite, and at most {state.tree.limit:.3g}"
            raise ParameterError(name, "td_errors", errors.max(), allowed, "Training has diverged.")
        is_stored = numbers >= first
        largest = max(state.largest, float(errors.max()) + self.min_priority) if len(errors) else state.largest
        capacity = self.buffer_size * self.n_envs
        change = state.tree.checked(numbers[is_stored] % capacity, priorities[is_stored])
        # One statement: an interrupt comes before it or after it, and the tree finishes what is pending.
        state.largest, state.beta, state.tree.pending = largest, beta, change
        state.tree.finish()

    @locked
    def reset(self) -> None:
        """Forget all transitions and their priorities."""
        state, size = self._priorities, self.buffer_size
        # Numbers of earlier samples stay known, and the position is still the remainder of the number of steps.
        steps = -(-state.steps // size) * size
        # One statement, as in _publish.
        self.pos, self.full, state.steps, state.filled, state.first, state.largest, state.beta, state.tree.pending = (
            *(0, False, steps, steps, steps),
            *(1.0, self.beta, (0, state.tree.size, 0.0)),
        )
        state.tree.finish()
        super().reset()

    @locked
    def memory_report(self) -> MemoryReport:
        """Memory of the observations, by key; the overhead includes the priorities."""
        report = super().memory_report()
        return replace(report, overhead=report.overhead + self._priorities.tree.nbytes)

    def _publish(self, position: int, following: int, done: NDArray[Any], infos: Any) -> None:
        del position, done, infos
        state = self._priorities
        state.steps, self.pos, self.full, self._is_torn = (
            state.steps + 1,
            following,
            self.full or not following,
            False,
        )

    def _settle(self) -> int:
        """Give new steps the largest priority, and none to steps that cannot be sampled. Returns the first that can."""
        state, oldest = self._priorities, self._priorities.steps - self.buffer_size
        if state.filled < state.steps:
            self._fill_steps(max(state.filled, oldest), state.steps, state.largest**self.alpha)
            state.filled = state.steps
        first = state.steps - self._whole_rows()
        if state.first < first:
            self._fill_steps(max(state.first, oldest), first, 0.0)
            state.first = first
        return first

    def _fill_steps(self, begin: int, end: int, value: float) -> None:
        """Set the priorities of steps, which may wrap around the end of the buffer."""
        size, tree, count = self.buffer_size, self._priorities.tree, end - begin
        begin %= size
        for low, high in ((begin, min(begin + count, size)), (0, begin + count - size)):
            if low < high:
                tree.fill(low * self.n_envs, high * self.n_envs, value)

    def _sample(self, batch_size: int, env: VecNormalize | None) -> Any:
        name = type(self).__name__
        if isinstance(batch_size, bool) or not isinstance(batch_size, (int, np.integer)) or batch_size < 1:
            raise ParameterError(name, "batch_size", batch_size, "it must be an integer of at least 1")
        self._settle()
        state, tree = self._priorities, self._priorities.tree
        total = tree.total
        if not total > 0:
            found, hint = "no step is left that could be stored completely", "Add a transition first."
            raise BufferStateError(name, f"sample {batch_size} transitions", found, hint)
        # As many equal ranges of mass as transitions, one of each.
        cells = tree.find((np.arange(batch_size) + np.random.random_sample(batch_size)) * (total / batch_size))
        mass = tree.leaves[cells]
        weights = ((mass.min() / mass) ** state.beta).astype(np.float32).reshape(-1, 1)
        rows, envs = np.divmod(cells, self.n_envs)
        newest = state.steps - 1
        numbers = (newest - (newest - rows) % self.buffer_size) * self.n_envs + envs
        if self.n_steps > 1:
            samples = self._samples_type(**n_step_samples(self, rows, envs, self.n_steps, self.gamma, env))
        else:
            samples = self._samples(transitions_at(self, cells), pairs_at(self, cells, self._may_overlap), env)
        return samples._replace(weights=self.to_torch(weights), leaf_nodes_indices=numbers)

    def _arguments(self) -> dict[str, Any]:
        names = ("alpha", "beta", "final_beta", "min_priority", "n_steps", "gamma")
        return {**super()._arguments(), **{name: getattr(self, name) for name in names}}

    def _state(self) -> State:
        return super()._state().put("priorities", self._priorities_state())

    def _restore(self, state: State) -> None:
        super()._restore(state)
        self._restore_priorities(state.part("priorities"))

    def _priorities_state(self) -> State:
        """The leaves and the counters. The sums are the same when they are computed again."""
        self._settle()
        names = ("steps", "first", "largest", "beta")
        facts = {name: getattr(self._priorities, name) for name in names}
        return State(facts, {"leaves": self._priorities.tree.leaves})

    def _restore_priorities(self, state: State) -> None:
        own, size = self._priorities, self.buffer_size
        leaves = state.array("leaves", np.float64, own.tree.size)
        steps = state.number("steps", self.size(), 1 << 53)
        first = state.number("first", steps - self.size(), steps)
        largest, beta = state.fact("largest", float), state.fact("beta", float)
        if steps % size != self.pos or not 0 < largest < math.inf or not 0 <= beta <= 1:
            raise StateError(f"{steps} steps, largest priority {largest} or beta {beta} are invalid")
        has_mass = np.zeros(size, np.bool_)
        has_mass[np.arange(first, steps) % size] = True
        if leaves.reshape(size, -1)[~has_mass].any():
            raise StateError("a transition that cannot be sampled has a priority")
        own.tree.restore(leaves)
        own.steps, own.filled, own.first, own.largest, own.beta = steps, steps, first, largest, beta

    @locked
    def __getstate__(self) -> dict[str, Any]:
        found = self._priorities_state()
        state = super().__getstate__()
        del state["_priorities"]
        state["priorities"] = found.facts, {name: array.copy() for name, array in found.arrays.items()}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        found = State(*state.pop("priorities"))
        super().__setstate__(state)
        self._priorities = _Priorities(SumTree(self.buffer_size * self.n_envs), self.beta)
        self._restore_priorities(found)


class CompressedDictPrioritizedReplayBuffer(CompressedPrioritizedReplayBuffer, CompressedDictReplayBuffer):
    """The same for Dict observations. Takes the arguments of :class:`CompressedPrioritizedReplayBuffer`;
    ``compression_method`` and ``dtypes`` may be given by key.
    """

    _samples_type: type[Any] = DictPrioritizedReplayBufferSamples


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _flat(values: Any) -> NDArray[Any]:
    """An array of one axis, of an array, a list or a tensor."""
    if isinstance(values, th.Tensor):
        values = values.detach().cpu().numpy()
    found = np.asarray(values).reshape(-1)
    return found if len(found) else found.astype(np.int64)  # an empty list has floats
