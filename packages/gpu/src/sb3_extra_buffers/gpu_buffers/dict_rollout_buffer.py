"""``GpuDictRolloutBuffer``."""

from __future__ import annotations

from sb3_extra_buffers.compressed import CompressedDictRolloutBuffer
from sb3_extra_buffers.gpu_buffers.rollout_buffer import GpuRolloutBuffer


class GpuDictRolloutBuffer(GpuRolloutBuffer, CompressedDictRolloutBuffer):
    """
    A ``DictRolloutBuffer`` whose observations live on a torch device, each key with its own dtype and codec.

    Takes the arguments of :class:`GpuRolloutBuffer`; ``compression_method`` and ``dtypes`` may be given by key.
    """
