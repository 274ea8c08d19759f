"""``GpuRolloutBuffer``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch as th
from gymnasium import spaces

from sb3_extra_buffers.compressed import CompressedRolloutBuffer
from sb3_extra_buffers.compressed.turns import in_turn
from sb3_extra_buffers.gpu_buffers.base import DeviceObservations, host_dtypes, layout_of
from sb3_extra_buffers.gpu_buffers.replay_buffer import flat


class GpuRolloutBuffer(DeviceObservations, CompressedRolloutBuffer):
    """
    A ``RolloutBuffer`` whose observations live on a torch device, compressed. What it returns is bit-equal to what
    Stable-Baselines3's own buffer returns for the same seed.

    :param buffer_size: Max number of element in the buffer
    :param observation_space: Observation space
    :param action_space: Action space
    :param device: PyTorch device of the model, where batches are delivered
    :param gae_lambda: Factor for trade-off of bias vs variance for Generalized Advantage Estimator
        Equivalent to classic advantage when set to 1.
    :param gamma: Discount factor
    :param n_envs: Number of parallel environments
    :param dtypes: The dtype to store, if it shall be narrower than that of the space: of torch or numpy, or what
        :func:`find_gpu_buffer_dtypes` returns. By default, the space decides.
    :param normalize_images: Divide observations by 255 and return them as float32
    :param compression_method: ``"none"``, ``"rle"``, or any other installed codec such as ``"zstd-3"``. Those without a
        path on the device are decoded on the host. ``"auto"`` chooses, and stores images as frames.
    :param compression_kwargs: Parameters of the codec, for instance ``{"level": 3}``
    :param decompression_kwargs: Accepted for old scripts, without effect
    :param buffer_device: Where observations are kept; by default on ``device``
    :param heap_bytes: A budget for them; a rollout must fit as a whole. By default the heap grows with what is stored.
    :param max_slot_bytes: Deprecated: ``heap_bytes`` divided by the number of observations
    :param output_dtype: ``"raw"`` returns observations in the dtype of the space, ``"float"`` as float32
    :param on_full: ``"raise"`` refuses the step for which there is no room, ``"evict"`` gives up the rollout
    :param decode_on: ``"device"`` fails if the codec has no path there, ``"host"`` never uses one. ``"auto"`` uses one
        where there is one, except on the CPU, where compiled codecs are faster.
    :param threads: How many threads of the host decode a batch. By default, as many as pay.
    :param layout: ``"cells"`` stores each observation by itself, ``"frames"`` each frame of stacked images once
    :param prefer: For frames: ``"speed"``, ``"balanced"`` or ``"memory"``
    """

    _room_hint = "Give a larger heap_bytes than for {fitted} of {steps} steps, or leave it out."

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
        compression_method: Any = "none",
        compression_kwargs: Mapping[str, Any] | None = None,
        decompression_kwargs: Mapping[str, Any] | None = None,
        buffer_device: th.device | str | None = None,
        heap_bytes: int | None = None,
        max_slot_bytes: int | None = None,
        *,
        output_dtype: str = "raw",
        on_full: str = "evict",
        decode_on: str = "auto",
        threads: int | None = None,
        layout: str | None = None,
        prefer: str = "speed",
        **kwargs: Any,
    ) -> None:
        n_cells = buffer_size * n_envs
        place = self._place(device, buffer_device, n_cells, heap_bytes, max_slot_bytes, on_full, decode_on, kwargs)
        CompressedRolloutBuffer.__init__(
            self,
            buffer_size,
            observation_space,
            action_space,
            device=device,
            gae_lambda=gae_lambda,
            gamma=gamma,
            n_envs=n_envs,
            dtypes=host_dtypes(dtypes),
            normalize_images=normalize_images,
            compression_method=compression_method,
            compression_kwargs=compression_kwargs,
            decompression_kwargs=decompression_kwargs,
            output_dtype=output_dtype,
            threads=threads,
            layout=layout_of(layout, compression_method),
            prefer=prefer,
            **place,
            **kwargs,
        )

    @in_turn
    def reconstruct_obs(self, idx: int) -> Any:
        """
        One observation, decoded, as a flat tensor on ``buffer_device``; for a Dict space, a dictionary of them.

        :param idx: position among all steps, one environment after the other, as ``get`` has them
        """
        env, step = divmod(int(idx), self.buffer_size)
        return flat(self._alone({key: array[step, env] for key, array in self._storage.observations.items()}))
