"""``CompressedDictReplayBuffer``."""

from __future__ import annotations

from stable_baselines3.common.buffers import DictReplayBuffer
from stable_baselines3.common.type_aliases import DictReplayBufferSamples

from sb3_extra_buffers.compressed.replay_buffer import CompressedReplayBuffer


class CompressedDictReplayBuffer(CompressedReplayBuffer, DictReplayBuffer):
    """
    A ``DictReplayBuffer`` that stores observations compressed, each key with its own dtype and codec.

    Takes the arguments of :class:`CompressedReplayBuffer`; ``compression_method`` and ``dtypes`` may be given by key.
    """

    _can_optimize = False
    _adds_plainly = False
    _samples_type = DictReplayBufferSamples
