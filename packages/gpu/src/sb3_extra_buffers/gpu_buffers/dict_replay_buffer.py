"""``GpuDictReplayBuffer``."""

from __future__ import annotations

from sb3_extra_buffers.compressed import CompressedDictReplayBuffer
from sb3_extra_buffers.gpu_buffers.replay_buffer import GpuReplayBuffer


class GpuDictReplayBuffer(GpuReplayBuffer, CompressedDictReplayBuffer):
    """
    A ``DictReplayBuffer`` whose observations live on a torch device, each key with its own dtype and codec.

    Takes the arguments of :class:`GpuReplayBuffer`; ``compression_method`` and ``dtypes`` may be given by key.
    """
