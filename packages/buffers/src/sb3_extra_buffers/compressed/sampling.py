"""How replay buffers draw transitions and make batches of them, one batch ahead if that is asked for."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from stable_baselines3.common.vec_env import VecNormalize

from sb3_extra_buffers.checkpoints import State
from sb3_extra_buffers.compressed.base import BaseCompressedBuffer
from sb3_extra_buffers.compressed.drawn import Drawn, Pairs, drawn_from, drawn_state
from sb3_extra_buffers.compressed.prefetch import Worker
from sb3_extra_buffers.compressed.spaces import NO_KEY
from sb3_extra_buffers.compressed.turns import in_turn
from sb3_extra_buffers.errors import BufferStateError


class SampledTransitions(BaseCompressedBuffer, ReplayBuffer):
    """The part of a replay buffer that samples."""

    #: Whether a sample has the observations and the next observations of the same rows.
    _reads_together = True
    _samples_type: type[Any] = ReplayBufferSamples
    #: What :meth:`_kept_rows` found last, and for which state.
    _kept: tuple[tuple[int, int], int] | None = None
    #: Whether the row at ``pos`` is half old, half new, because the heap could not take all of it.
    _is_torn = False
    #: The next batch, if it is drawn already.
    _ahead: Drawn | None = None

    def _sample(self, batch_size: int, env: VecNormalize | None) -> Any:
        if self._storage.worker is not None:
            return self._sample_ahead(batch_size, env, self._storage.worker)
        if self._makes_batches_itself():
            drawn = self._draw(batch_size)
            return self._batch(drawn, self._storage.read_both(drawn.cells), env)
        if self._are_all_whole():
            return super().sample(batch_size, env)
        return self._get_samples(self._draw_whole(batch_size), env=env)

    def _makes_batches_itself(self) -> bool:
        """Whether a batch can go the shortest way. A subclass with a ``_get_samples`` of its own shall be asked."""
        is_own = type(self)._get_samples is SampledTransitions._get_samples
        return is_own and self._reads_together and not self.optimize_memory_usage

    def _sample_ahead(self, batch_size: int, env: VecNormalize | None, worker: Worker) -> Any:
        """Hand out what was drawn the last time, and draw what will be handed out the next time.

        Random numbers are drawn here and nowhere else, so they do not depend on how fast the worker is.
        """
        drawn, self._ahead = self._ahead, None
        if drawn is None or len(drawn.cells) != batch_size:
            drawn = self._draw(batch_size)
        found = drawn.observations
        if isinstance(found, Future):
            found = worker.finish(found)
        elif found is None:
            found = self._storage.read_both(drawn.cells)
        if self._are_all_whole() or self._whole_rows():
            following = self._draw(batch_size)
            job = worker.submit(self._storage.read_both, following.cells)
            following.observations = job
            self._ahead = following
        return self._batch(drawn, found, env)

    @in_turn
    def _get_samples(self, batch_inds: NDArray[Any], env: VecNormalize | None = None) -> Any:
        """What Stable-Baselines3 does, with observations and next observations read in one go."""
        if not self._reads_together or self.optimize_memory_usage:
            return super()._get_samples(batch_inds, env)
        drawn = self._drawn(self._storage.known_rows(batch_inds))
        return self._batch(drawn, self._storage.read_both(drawn.cells), env)

    def _draw(self, batch_size: int) -> Drawn:
        """Draw what Stable-Baselines3 would draw now."""
        if self._are_all_whole():
            return self._drawn(np.random.randint(0, self.size(), size=batch_size))
        return self._drawn(self._draw_whole(batch_size))

    def _drawn(self, rows: NDArray[Any]) -> Drawn:
        """Draw an environment for each row, and look up what is not compressed."""
        cells = rows.astype(np.int64, copy=False)  # 32 bits on Windows, before numpy 2
        if self.n_envs > 1:  # among one, numpy draws no random number either
            cells = cells * self.n_envs
            cells += np.random.randint(0, high=self.n_envs, size=(len(rows),))
        # Only use dones that are not due to timeouts
        dones = self.dones.take(cells) * (1 - self.timeouts.take(cells))
        actions = self.actions.reshape(-1, self.action_dim)[cells]
        return Drawn(cells, actions, self.rewards.take(cells).reshape(-1, 1), dones.reshape(-1, 1))

    def _batch(self, drawn: Drawn, pairs: Pairs, env: VecNormalize | None) -> Any:
        """A batch, normalized with what is known now."""
        obs, next_obs = pairs[NO_KEY] if NO_KEY in pairs else ({key: pairs[key][n] for key in pairs} for n in (0, 1))
        return self._samples_type(
            observations=self._to_tensors(self._normalize_obs(obs, env)),
            actions=self.to_torch(drawn.actions),
            next_observations=self._to_tensors(self._normalize_obs(next_obs, env)),
            dones=self.to_torch(drawn.dones),
            rewards=self.to_torch(self._normalize_reward(drawn.rewards, env)),
        )

    def _to_tensors(self, observations: Any) -> Any:
        if isinstance(observations, dict):
            return {key: self.to_torch(part) for key, part in observations.items()}
        return self.to_torch(observations)

    def _draw_whole(self, batch_size: int) -> NDArray[Any]:
        """Draw among the rows that are left."""
        kept = self._whole_rows()
        if not kept:
            found, hint = "no row is left that could be stored completely", "Add a transition first."
            raise BufferStateError(type(self).__name__, f"sample {batch_size} transitions", found, hint)
        rows: NDArray[Any] = (self.pos - kept + np.random.randint(0, kept, size=batch_size)) % self.buffer_size
        return rows

    def _are_all_whole(self) -> bool:
        """Whether every row can be sampled."""
        return self._kept_rows() == self.size()

    def _whole_rows(self) -> int:
        """How many rows, counted back from the newest, can be sampled."""
        kept = self._kept_rows()
        if self.full and self.optimize_memory_usage:
            return min(kept, self.buffer_size - 1)  # the oldest row holds what the newest leads to
        return kept

    def _kept_rows(self) -> int:
        """How many rows, counted back from the newest, are there and whole."""
        kept = self._held_rows()
        return min(kept, self.buffer_size - 1) if self._is_torn and self.full else kept

    def _held_rows(self) -> int:
        """How many rows, counted back from the newest, a heap of limited capacity has not dropped."""
        size, evicted = self.size(), self._storage.evicted_cells
        if not evicted:
            return size
        if self._kept is None or self._kept[0] != (self.pos, evicted):
            self._kept = (self.pos, evicted), self._count_kept(size)
        return self._kept[1]

    def _count_kept(self, size: int) -> int:
        lost = np.flatnonzero(self._storage.lost_rows()[(self.pos - size + np.arange(size)) % self.buffer_size])
        low = int(lost[-1]) + 1 if len(lost) else 0
        # Cells are dropped in the order in which they were written, so the border is found by halving.
        high = size  # a row that could not be stored may have driven out even the newest
        while low < high:
            middle = (low + high) // 2
            if self._storage.holds((self.pos - size + middle) % self.buffer_size):
                high = middle
            else:
                low = middle + 1
        return size - low

    def _state(self) -> State:
        found = super()._state()
        found.facts["has_ahead"] = self._ahead is not None
        return found if self._ahead is None else found.put("ahead", drawn_state(self._ahead))

    def _restore(self, state: State) -> None:
        super()._restore(state)
        state.part("own").number("pos", 0, self.buffer_size - 1)  # where the next row goes
        if state.fact("has_ahead", bool):
            self._ahead = drawn_from(self, state.part("ahead"))
