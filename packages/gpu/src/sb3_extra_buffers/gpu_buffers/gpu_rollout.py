"""Rollout buffers on a device: ``GpuRolloutBuffer`` and ``GpuDictRolloutBuffer``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch as th
from gymnasium import spaces

from sb3_extra_buffers.compressed import CompressedDictRolloutBuffer, CompressedRolloutBuffer
from sb3_extra_buffers.compressed.base import locked
from sb3_extra_buffers.gpu_buffers.base import DeviceObservations, host_dtypes, layout_of
from sb3_extra_buffers.gpu_buffers.compression_methods import default_level
from sb3_extra_buffers.gpu_buffers.gpu_replay import flat


class GpuRolloutBuffer(DeviceObservations, CompressedRolloutBuffer):
    """
    A ``RolloutBuffer`` with compressed observations on a torch device. Its samples are bit-equal to those of
    Stable-Baselines3's buffer for the same seed.

    :param buffer_size: Max number of element in the buffer
    :param observation_space: Observation space
    :param action_space: Action space
    :param device: PyTorch device of the model, where batches are delivered
    :param gae_lambda: Factor for trade-off of bias vs variance for Generalized Advantage Estimator
        Equivalent to classic advantage when set to 1.
    :param gamma: Discount factor
    :param n_envs: Number of parallel environments
    :param dtypes: Stored dtype, if narrower than that of the space: of torch or numpy, or the result of
        :func:`find_gpu_buffer_dtypes`. Default: that of the space.
    :param normalize_images: Divide observations by 255 and return them as float32
    :param compression_method: ``"none"``, ``"rle"``, or any other installed codec such as ``"zstd-3"``. Codecs
        without a path on the device are decoded on the host. ``"zstd"`` means ``"zstd-3"``, level -3. ``"auto"``
        chooses, and stores images as frames.
    :param compression_kwargs: Parameters of the codec, for instance ``{"level": 3}``
    :param decompression_kwargs: Accepted for old scripts, without effect
    :param buffer_device: Device of the stored observations; default: ``device``
    :param heap_bytes: Capacity for their payloads; a whole rollout must fit. Default: the heap grows as needed.
    :param max_slot_bytes: Deprecated: ``heap_bytes`` divided by the number of observations
    :param output_dtype: ``"raw"`` returns observations in the dtype of the space, ``"float"`` as float32
    :param on_full: When ``heap_bytes`` is full: ``"raise"`` refuses the step, ``"evict"`` gives up the rollout
    :param decode_on: ``"device"`` fails if the codec has no path there, ``"host"`` never uses it. ``"auto"`` uses
        it if there is one, except on the CPU, where compiled codecs are faster.
    :param threads: Threads of the host that decode a batch. Default: chosen automatically.
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
        on_full: str = "raise",
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
            compression_method=default_level(compression_method, compression_kwargs),
            compression_kwargs=compression_kwargs,
            decompression_kwargs=decompression_kwargs,
            output_dtype=output_dtype,
            threads=threads,
            layout=layout_of(layout, compression_method),
            prefer=prefer,
            **place,
            **kwargs,
        )

    @locked
    def reconstruct_obs(self, idx: int) -> Any:
        """
        One observation, decoded, as a flat tensor on ``buffer_device``; for a Dict space, a dictionary of them.

        :param idx: position among all steps, all steps of the first environment first, as in ``get``
        """
        env, step = divmod(int(idx), self.buffer_size)
        return flat(self._alone({key: array[step, env] for key, array in self._storage.observations.items()}))


class GpuDictRolloutBuffer(GpuRolloutBuffer, CompressedDictRolloutBuffer):
    """
    A ``DictRolloutBuffer`` with compressed observations on a torch device, each key with its own dtype and codec.

    Takes the arguments of :class:`GpuRolloutBuffer`; ``compression_method`` and ``dtypes`` may be given by key.
    """


for _kind in (GpuRolloutBuffer, GpuDictRolloutBuffer):
    _kind.__module__ = __package__  # pickles and saved models name the package, so files may move
