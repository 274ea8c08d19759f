"""``CompressedNStepReplayBuffer``."""

from __future__ import annotations

from typing import Any

from stable_baselines3.common.buffers import NStepReplayBuffer

from sb3_extra_buffers.compressed.replay_buffer import CompressedReplayBuffer


class CompressedNStepReplayBuffer(CompressedReplayBuffer, NStepReplayBuffer):
    """
    An ``NStepReplayBuffer`` that stores observations compressed.

    Takes the arguments of :class:`CompressedReplayBuffer`, and ``n_steps`` and ``gamma``. Stable-Baselines3 sets these
    two by itself only for its own class, so give them in ``replay_buffer_kwargs``.
    """

    _can_optimize = False
    _reads_together = False
    _prefetch_obstacle = "n-step returns are put together from several rows when they are sampled"

    def _arguments(self) -> dict[str, Any]:
        return {**super()._arguments(), "n_steps": self.n_steps, "gamma": self.gamma}
