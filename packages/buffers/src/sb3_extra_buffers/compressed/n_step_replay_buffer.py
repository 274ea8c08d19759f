"""N-step returns for Dict observations, which Stable-Baselines3 does not have."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecNormalize

from sb3_extra_buffers.compressed.base import locked
from sb3_extra_buffers.compressed.replay_buffer import CompressedDictReplayBuffer
from sb3_extra_buffers.compressed.transitions import check_n_steps, n_step_samples


class CompressedDictNStepReplayBuffer(CompressedDictReplayBuffer):
    """An n-step replay buffer for Dict observations, compressed.

    Takes the arguments of :class:`CompressedDictReplayBuffer`. Returns and draws are those of Stable-Baselines3's
    ``NStepReplayBuffer``, which refuses Dict observations.

    :param n_steps: Number of steps whose rewards are summed up
    :param gamma: Discount factor; give it the one of the model
    """

    _variant = "NStep"
    _prefetch_obstacle = "n-step returns are computed from several steps when they are sampled"

    def __init__(self, *args: Any, n_steps: int = 3, gamma: float = 0.99, **kwargs: Any) -> None:
        check_n_steps(type(self).__name__, n_steps, gamma)
        super().__init__(*args, **kwargs)
        self.n_steps, self.gamma = int(n_steps), float(gamma)

    def _arguments(self) -> dict[str, Any]:
        return {**super()._arguments(), "n_steps": self.n_steps, "gamma": self.gamma}

    @locked
    def _get_samples(self, batch_inds: NDArray[Any], env: VecNormalize | None = None) -> Any:
        envs = np.random.randint(0, self.n_envs, size=batch_inds.shape)
        return self._samples_type(**n_step_samples(self, batch_inds, envs, self.n_steps, self.gamma, env))
