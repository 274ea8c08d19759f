"""Transitions by cell number: single ones, n-step returns, and sequences of one environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecNormalize

from sb3_extra_buffers.compressed.prefetch import Batch, Pairs
from sb3_extra_buffers.compressed.storage import NO_KEY
from sb3_extra_buffers.errors import BufferStateError, ParameterError

if TYPE_CHECKING:
    from sb3_extra_buffers.compressed.replay_buffer import CompressedReplayBuffer

Cells = NDArray[np.int64]
#: Longest sequences, so that a mistyped length is an error and not a request for all memory.
_MOST_STEPS = 1 << 20


def transitions_at(buffer: CompressedReplayBuffer, cells: Cells) -> Batch:
    """What is not compressed of these transitions. ``dones`` that are due to timeouts are 0."""
    dones = buffer.dones.take(cells) * (1 - buffer.timeouts.take(cells))
    actions = buffer.actions.reshape(-1, buffer.action_dim)[cells]
    return Batch(cells, actions, buffer.rewards.take(cells).reshape(-1, 1), dones.reshape(-1, 1))


def pairs_at(buffer: CompressedReplayBuffer, cells: Cells, overlap: bool = False) -> Pairs:
    """Observations and next observations of these transitions, by key.

    :param overlap: whether the two may be views of one array
    """
    if not buffer.optimize_memory_usage:
        return buffer._storage.read_both(cells, overlap)
    rows, envs = np.divmod(cells, buffer.n_envs)
    following = (rows + 1) % buffer.buffer_size
    return {key: [array[rows, envs], array[following, envs]] for key, array in buffer._storage.observations.items()}


def check_n_steps(owner: str, n_steps: Any, gamma: Any) -> None:
    """Refuse arguments of n-step returns that have no meaning."""
    if isinstance(n_steps, bool) or not isinstance(n_steps, (int, np.integer)) or n_steps < 1:
        raise ParameterError(owner, "n_steps", n_steps, "it must be an integer of at least 1")
    if isinstance(gamma, bool) or not isinstance(gamma, (int, float, np.number)) or not 0 <= gamma <= 1:
        raise ParameterError(owner, "gamma", gamma, "it must be from 0 to 1")


def n_step_samples(
    buffer: Any, rows: NDArray[Any], envs: NDArray[Any], n_steps: int, gamma: float, env: VecNormalize | None
) -> dict[str, Any]:
    """The fields of a sample with n-step returns, bit-equal to those of Stable-Baselines3's ``NStepReplayBuffer``.

    A return ends with its episode, and before the position of the next step.

    :param rows: steps in the buffer
    :param envs: an environment for each
    """
    size = buffer.buffer_size
    indices = (rows[:, np.newaxis] + np.arange(n_steps)) % size
    at = indices, envs[:, np.newaxis]
    rewards = buffer._normalize_reward(buffer.rewards[at], env)
    is_end = (buffer.dones[at] != 0) | (buffer.timeouts[at] != 0) | (indices == (buffer.pos - 1) % size)
    last = np.where(is_end.any(axis=1), is_end.argmax(axis=1), n_steps - 1)
    mask = np.arange(n_steps) <= last[:, np.newaxis]
    discounts = gamma ** np.arange(n_steps, dtype=np.float32).reshape(1, -1)
    returns = (rewards * discounts * mask).sum(axis=1, keepdims=True)
    ends = (rows + last) % size, envs
    dones = buffer.dones[ends] * (1 - buffer.timeouts[ends])
    arrays = buffer._storage.observations, buffer._storage.next_observations
    obs, next_obs = (
        buffer._normalize_obs(buffer._alone({key: array[place] for key, array in part.items()}), env)
        for part, place in zip(arrays, ((rows, envs), ends))
    )
    return {
        "observations": buffer._to_tensors(obs),
        "actions": buffer.to_torch(buffer.actions[rows, envs]),
        "next_observations": buffer._to_tensors(next_obs),
        "dones": buffer.to_torch(dones.reshape(-1, 1)),
        "rewards": buffer.to_torch(returns),
        "discounts": buffer.to_torch(gamma ** mask.sum(axis=1, keepdims=True).astype(np.float32)),
    }


class SequenceSamples(NamedTuple):
    """Sequences of transitions: the first axis is the batch, the second is time.

    Steps that ``mask`` excludes are filled with zeros: they would belong to another episode, or are not in the buffer.

    :param observations: observations, or a dictionary of them
    :param actions: actions
    :param next_observations: next observations
    :param dones: ends of episodes that are not due to timeouts
    :param rewards: rewards of single steps
    :param mask: whether a step is part of the sequence, ``(batch, burn_in + length)``
    :param loss_mask: the same without the steps of the burn-in, which only warm up a recurrent state
    :param episode_starts: whether the first step of an episode is known to be here: a recurrent state begins at zero
    """

    observations: Any
    actions: th.Tensor
    next_observations: Any
    dones: th.Tensor
    rewards: th.Tensor
    mask: th.Tensor
    loss_mask: th.Tensor
    episode_starts: th.Tensor


def sequence_samples(
    buffer: CompressedReplayBuffer, batch_size: int, length: int, burn_in: int, env: VecNormalize | None
) -> SequenceSamples:
    """See :meth:`CompressedReplayBuffer.sample_sequences`. All observations are read by one call."""
    name = type(buffer).__name__
    for parameter, value, least in (("batch_size", batch_size, 1), ("length", length, 1), ("burn_in", burn_in, 0)):
        is_integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if not is_integer or not least <= value <= _MOST_STEPS:
            allowed = f"it must be an integer from {least} to {_MOST_STEPS}"
            raise ParameterError(name, parameter, value, allowed)
    kept = buffer._whole_rows()
    if not kept:
        hint = "Collect transitions before training; see learning_starts."
        raise BufferStateError(name, f"sample {batch_size} sequences", "no step can be sampled", hint)
    # Ages count from the oldest step that can be sampled.
    starts = np.random.randint(0, kept, size=batch_size)
    envs = np.random.randint(0, buffer.n_envs, size=batch_size)
    ages = starts[:, np.newaxis] + np.arange(-burn_in, length)
    rows = (buffer.pos - kept + ages) % buffer.buffer_size
    cells = rows * buffer.n_envs + envs[:, np.newaxis]
    ends = buffer.dones.take(cells) != 0
    mask = (ages >= 0) & (ages < kept)
    # Forward, nothing behind the first end of an episode; backward, nothing before the last one.
    mask[:, burn_in + 1 :] &= ~np.logical_or.accumulate(ends[:, burn_in:-1], axis=1)
    mask[:, :burn_in] &= ~np.logical_or.accumulate(ends[:, :burn_in][:, ::-1], axis=1)[:, ::-1]
    before = (rows - 1) % buffer.buffer_size
    begins = mask & (ages > 0) & (buffer.dones.take(before * buffer.n_envs + envs[:, np.newaxis]) != 0)
    if not buffer.full and kept == buffer.size():
        begins |= mask & (ages == 0)  # nothing was ever overwritten
    places = np.flatnonzero(mask)
    chosen = cells.reshape(-1)[places].astype(np.int64, copy=False)
    batch, pairs = transitions_at(buffer, chosen), pairs_at(buffer, chosen)
    obs, next_obs = pairs[NO_KEY] if NO_KEY in pairs else ({key: pairs[key][n] for key in pairs} for n in (0, 1))
    shape, is_whole = mask.shape, len(places) == mask.size
    index = th.from_numpy(places)

    def laid_out(part: Any) -> Any:
        """Rows at their places among zeros."""
        if isinstance(part, dict):
            return {key: laid_out(rows) for key, rows in part.items()}
        if is_whole:
            return part.reshape(*shape, *part.shape[1:])
        whole = part.new_zeros((mask.size, *part.shape[1:]))
        whole[index.to(part.device)] = part
        return whole.reshape(*shape, *part.shape[1:])

    def flags(array: NDArray[Any]) -> th.Tensor:
        return th.from_numpy(np.ascontiguousarray(array)).to(buffer.device)

    return SequenceSamples(
        observations=laid_out(buffer._to_tensors(buffer._normalize_obs(obs, env))),
        actions=laid_out(buffer.to_torch(batch.actions)),
        next_observations=laid_out(buffer._to_tensors(buffer._normalize_obs(next_obs, env))),
        dones=laid_out(buffer.to_torch(batch.dones)),
        rewards=laid_out(buffer.to_torch(buffer._normalize_reward(batch.rewards, env))),
        mask=flags(mask),
        loss_mask=flags(mask & (np.arange(-burn_in, length) >= 0)),
        episode_starts=flags(begins),
    )
