"""``DenseObservationStore``."""

from __future__ import annotations

import torch as th

from sb3_extra_buffers.gpu_buffers.devices import as_device
from sb3_extra_buffers.gpu_buffers.observation_stores.checks import as_observation, check_place


class DenseObservationStore:
    """
    Store flattened observations in a dense Torch tensor.

    :param buffer_size: how many steps there are
    :param n_envs: how many environments
    :param flat_len: elements of an observation
    :param elem_type: their dtype
    :param device: where they are kept
    """

    def __init__(
        self, buffer_size: int, n_envs: int, flat_len: int, elem_type: th.dtype, device: str | th.device
    ) -> None:
        self.device = as_device(device)
        self._data = th.zeros((buffer_size, n_envs, flat_len), dtype=elem_type, device=self.device)
        self._shape = buffer_size, n_envs

    def write(self, pos: int, env_idx: int, flat_tensor: th.Tensor) -> None:
        """Write a flattened observation."""
        check_place("DenseObservationStore", pos, env_idx, self._shape)
        data = self._data
        data[pos, env_idx] = as_observation(
            "DenseObservationStore", flat_tensor, data.shape[2], data.dtype, data.device
        )

    def read(self, pos: int, env_idx: int) -> th.Tensor:
        """Read a flattened observation. It is a copy: what is done to it stays outside."""
        check_place("DenseObservationStore", pos, env_idx, self._shape)
        return self._data[pos, env_idx].clone()

    def read_flat(self, flat_idx: int) -> th.Tensor:
        """Read by flattened index: all steps of the first environment, then those of the second."""
        env_idx, pos = divmod(flat_idx, self._shape[0])
        return self.read(pos, env_idx)

    def flatten(self) -> th.Tensor:
        """All observations in the order of Stable-Baselines3's ``swap_and_flatten``, as a copy."""
        # With one environment, or one step, reshaping alone would hand out the memory of the store.
        return self._data.swapaxes(0, 1).flatten(0, 1).clone(memory_format=th.contiguous_format)
