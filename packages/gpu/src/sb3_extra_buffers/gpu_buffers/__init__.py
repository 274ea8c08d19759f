"""Buffers for Stable-Baselines3 with compressed observations on a torch device."""

from sb3_extra_buffers.gpu_buffers.base import BaseGpuBuffer
from sb3_extra_buffers.gpu_buffers.compression_methods import (
    GpuCompressionMethod,
    GpuCompressionMethods,
)
from sb3_extra_buffers.gpu_buffers.gpu_replay import GpuDictReplayBuffer, GpuReplayBuffer
from sb3_extra_buffers.gpu_buffers.gpu_rollout import GpuDictRolloutBuffer, GpuRolloutBuffer
from sb3_extra_buffers.gpu_buffers.memory import SharedRawHeap
from sb3_extra_buffers.gpu_buffers.metadata import SlotMetadata, arr_config_length
from sb3_extra_buffers.gpu_buffers.observation_store import (
    DenseObservationStore,
    RawObservationStore,
    create_observation_store,
)
from sb3_extra_buffers.gpu_buffers.raw_buffer import RawBuffer, read_at, write_at
from sb3_extra_buffers.gpu_buffers.utils import (
    estimate_max_slot_bytes,
    estimate_total_heap_bytes,
    find_gpu_buffer_dtypes,
    find_smallest_dtype,
    has_zstd,
    numpy_dtype_to_torch,
    torch_dtype_element_size,
    torch_dtype_to_numpy,
)

__all__ = [
    "BaseGpuBuffer",
    "DenseObservationStore",
    "GpuCompressionMethod",
    "GpuCompressionMethods",
    "GpuDictReplayBuffer",
    "GpuDictRolloutBuffer",
    "GpuReplayBuffer",
    "GpuRolloutBuffer",
    "RawBuffer",
    "RawObservationStore",
    "SharedRawHeap",
    "SlotMetadata",
    "arr_config_length",
    "create_observation_store",
    "estimate_max_slot_bytes",
    "estimate_total_heap_bytes",
    "find_gpu_buffer_dtypes",
    "find_smallest_dtype",
    "has_zstd",
    "numpy_dtype_to_torch",
    "read_at",
    "torch_dtype_element_size",
    "torch_dtype_to_numpy",
    "write_at",
]
