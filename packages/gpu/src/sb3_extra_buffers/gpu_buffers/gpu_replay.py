"""Replay buffers on a device: ``GpuReplayBuffer`` and ``GpuDictReplayBuffer``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch as th
from gymnasium import spaces

from sb3_extra_buffers.compressed import CompressedDictReplayBuffer, CompressedReplayBuffer
from sb3_extra_buffers.gpu_buffers.base import DeviceObservations, cells_of, host_dtypes, layout_of
from sb3_extra_buffers.gpu_buffers.compression_methods import default_level


class GpuReplayBuffer(DeviceObservations, CompressedReplayBuffer):
    """
    A ``ReplayBuffer`` with compressed observations on a torch device. Its samples are bit-equal to those of
    Stable-Baselines3's buffer for the same seed.

    :param buffer_size: Max number of element in the buffer
    :param observation_space: Observation space
    :param action_space: Action space
    :param device: PyTorch device of the model, where batches are delivered
    :param n_envs: Number of parallel environments
    :param optimize_memory_usage: Store one observation per step. Together with ``handle_timeout_termination``, which
        Stable-Baselines3 cannot combine, it has no effect: next observations are shared anyway, and exact.
    :param handle_timeout_termination: Handle timeout termination (due to timelimit)
        separately and treat the task as infinite horizon task.
    :param dtypes: Stored dtype, if narrower than that of the space: of torch or numpy, or the result of
        :func:`find_gpu_buffer_dtypes`. Default: that of the space.
    :param normalize_images: Divide observations by 255 and return them as float32
    :param compression_method: ``"none"``, ``"rle"``, or any other installed codec such as ``"zstd-3"``. Codecs
        without a path on the device are decoded on the host. ``"zstd"`` means ``"zstd-3"``, level -3. ``"auto"``
        chooses, and stores images as frames.
    :param compression_kwargs: Parameters of the codec, for instance ``{"level": 3}``
    :param decompression_kwargs: Accepted for old scripts, without effect
    :param output_dtype: ``"raw"`` returns observations in the dtype of the space, ``"float"`` as float32
    :param buffer_device: Device of the stored observations; default: ``device``
    :param heap_bytes: Capacity for their payloads. Default: the heap grows as needed.
    :param max_slot_bytes: Deprecated: ``heap_bytes`` divided by the number of observations
    :param on_full: When ``heap_bytes`` is full: ``"raise"`` raises an error, ``"evict"`` drops the oldest transitions
    :param decode_on: ``"device"`` fails if the codec has no path there, ``"host"`` never uses it. ``"auto"`` uses
        it if there is one, except on the CPU, where compiled codecs are faster.
    :param threads: Threads of the host that decode a batch. Default: chosen automatically.
    :param layout: ``"cells"`` stores each observation by itself, ``"frames"`` each frame of stacked images once
    :param prefer: For frames: ``"speed"``, ``"balanced"`` or ``"memory"``
    """

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
        compression_method: Any = "none",
        compression_kwargs: Mapping[str, Any] | None = None,
        decompression_kwargs: Mapping[str, Any] | None = None,
        output_dtype: str = "raw",
        buffer_device: th.device | str | None = None,
        heap_bytes: int | None = None,
        max_slot_bytes: int | None = None,
        *,
        on_full: str = "raise",
        decode_on: str = "auto",
        threads: int | None = None,
        layout: str | None = None,
        prefer: str = "speed",
        **kwargs: Any,
    ) -> None:
        n_cells = cells_of(buffer_size, n_envs, 1 if optimize_memory_usage else 2)
        place = self._place(device, buffer_device, n_cells, heap_bytes, max_slot_bytes, on_full, decode_on, kwargs)
        CompressedReplayBuffer.__init__(
            self,
            buffer_size,
            observation_space,
            action_space,
            device=device,
            n_envs=n_envs,
            optimize_memory_usage=optimize_memory_usage,
            handle_timeout_termination=handle_timeout_termination,
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

    def reconstruct_obs(self, idx: int, env_idx: int = 0) -> Any:
        """
        One observation, decoded, as a flat tensor on ``buffer_device``; for a Dict space, a dictionary of them.

        :param idx: position in the buffer
        :param env_idx: number of the environment
        """
        return flat(super().reconstruct_obs(idx, env_idx))

    def reconstruct_nextobs(self, idx: int, env_idx: int = 0) -> Any:
        """
        One next observation, decoded, as a flat tensor on ``buffer_device``; for a Dict space, a dictionary of them.

        :param idx: position in the buffer
        :param env_idx: number of the environment
        """
        if self.optimize_memory_usage:
            return self.reconstruct_obs((idx + 1) % self.buffer_size, env_idx)
        return flat(super().reconstruct_nextobs(idx, env_idx))


class GpuDictReplayBuffer(GpuReplayBuffer, CompressedDictReplayBuffer):
    """
    A ``DictReplayBuffer`` with compressed observations on a torch device, each key with its own dtype and codec.

    Takes the arguments of :class:`GpuReplayBuffer`; ``compression_method`` and ``dtypes`` may be given by key.
    """


def flat(found: Any) -> Any:
    """Flatten a tensor, or the tensors of a dictionary."""
    return {key: part.reshape(-1) for key, part in found.items()} if isinstance(found, dict) else found.reshape(-1)


for _kind in (GpuReplayBuffer, GpuDictReplayBuffer):
    _kind.__module__ = __package__  # pickles and saved models name the package, so files may move
