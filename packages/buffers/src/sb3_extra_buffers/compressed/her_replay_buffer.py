"""The replay buffer for hindsight experience replay (HER)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv, VecNormalize
from stable_baselines3.her.goal_selection_strategy import GoalSelectionStrategy
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer

from sb3_extra_buffers.checkpoints import State, StateError
from sb3_extra_buffers.compressed.base import locked
from sb3_extra_buffers.compressed.json import infos_from, infos_state
from sb3_extra_buffers.compressed.replay_buffer import CompressedDictReplayBuffer
from sb3_extra_buffers.errors import BufferStateError
from sb3_extra_buffers.heaps.state import within


class CompressedHerReplayBuffer(CompressedDictReplayBuffer, HerReplayBuffer):
    """A ``HerReplayBuffer`` that stores observations compressed.

    Takes the arguments of ``HerReplayBuffer`` and, by keyword, those of :class:`CompressedReplayBuffer`.

    :param env: The training environment
    :param optimize_memory_usage: Has no effect: next observations are shared anyway
    :param storage: Further arguments of :class:`CompressedReplayBuffer`
    """

    _replaceable = (*CompressedDictReplayBuffer._replaceable, "env")
    _prefetch_obstacle = "goals are replaced when they are sampled, and rewards are computed again"

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Dict,
        action_space: spaces.Space[Any],
        env: VecEnv,
        device: th.device | str = "auto",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,
        handle_timeout_termination: bool = True,
        n_sampled_goal: int = 4,
        goal_selection_strategy: GoalSelectionStrategy | str = "future",
        copy_info_dict: bool = False,
        **storage: Any,
    ) -> None:
        own: dict[str, Any] = {"env": env, "n_sampled_goal": n_sampled_goal, "copy_info_dict": copy_info_dict}
        own["goal_selection_strategy"] = goal_selection_strategy
        own["optimize_memory_usage"] = optimize_memory_usage
        own["handle_timeout_termination"] = handle_timeout_termination
        super().__init__(buffer_size, observation_space, action_space, device, n_envs, **own, **storage)

    @locked
    def reset(self) -> None:
        """Forget all transitions and episodes."""
        # Episodes first: after an interrupt, none of them refers to transitions that are gone.
        self.ep_length.fill(0)
        # One statement, as in _publish.
        self.pos, self.full, self._current_ep_start = 0, False, np.zeros_like(self._current_ep_start)
        super().reset()
        self.ep_start.fill(0)

    def _arguments(self) -> dict[str, Any]:
        return {
            **super()._arguments(),
            "env": None,  # as in a pickle: set_env(), or load(..., env=env)
            "n_sampled_goal": self.n_sampled_goal,
            "goal_selection_strategy": self.goal_selection_strategy.name.lower(),
            "copy_info_dict": self.copy_info_dict,
        }

    def _state(self) -> State:
        found = super()._state()
        return found.put("infos", infos_state(type(self).__name__, self.infos)) if self.copy_info_dict else found

    def _restore(self, state: State) -> None:
        super()._restore(state)
        if self.copy_info_dict:
            self.infos = infos_from(state.part("infos"), self.infos.shape)
        for name in ("ep_start", "ep_length", "_current_ep_start"):
            within(name, getattr(self, name), 0, self.buffer_size)
        # Goals are drawn between a transition and the end of its episode, so a transition must lie before that end.
        steps = (np.arange(self.buffer_size)[:, None] - self.ep_start) % self.buffer_size
        if ((self.ep_length > 0) & (steps >= self.ep_length)).any():
            raise StateError("a transition lies outside of its episode")

    def _publish(self, position: int, following: int, done: NDArray[Any], infos: Any) -> None:
        # The same as in HerReplayBuffer.add, in an order that an interrupt may split before a step is visible.
        size, starts = self.buffer_size, self._current_ep_start.copy()
        for env in np.flatnonzero(self.ep_length[position]):
            start = self.ep_start[position, env]
            first = start if start == starts[env] else position  # equal: an interrupted add has ended the episode
            self.ep_length[np.arange(first, start + self.ep_length[position, env]) % size, env] = 0
        self.ep_start[position] = starts
        if self.copy_info_dict:
            self.infos[position] = infos
        for env in np.flatnonzero(done):
            length = (following - starts[env]) % size
            self.ep_length[np.arange(starts[env], starts[env] + length) % size, env] = length
            starts[env] = following
        full = self.full or not following
        self._current_ep_start, self.pos, self.full, self._is_torn = starts, following, full, False

    def _sample(self, batch_size: int, env: VecNormalize | None) -> Any:
        if not self._storage.evicted_cells and not self._is_torn:
            return HerReplayBuffer.sample(self, batch_size, env)
        kept = self._kept_rows()
        if kept < self.size():
            # An episode whose beginning was evicted or partly overwritten must not be relabelled.
            dropped = np.ones(self.buffer_size, np.bool_)
            dropped[(self.pos - 1 - np.arange(kept)) % self.buffer_size] = False
            self.ep_length[dropped[self.ep_start]] = 0
        if not self.ep_length.any():
            found = f"{kept} steps are left, and no whole episode among them"
            hint = "Give the heap a larger capacity."
            raise BufferStateError(type(self).__name__, f"sample {batch_size} transitions", found, hint)
        return HerReplayBuffer.sample(self, batch_size, env)
