"""``CompressedDictRolloutBuffer``."""

from __future__ import annotations

from stable_baselines3.common.buffers import DictRolloutBuffer

from sb3_extra_buffers.compressed.rollout_buffer import CompressedRolloutBuffer


class CompressedDictRolloutBuffer(CompressedRolloutBuffer, DictRolloutBuffer):
    """
    A ``DictRolloutBuffer`` that stores observations compressed, each key with its own dtype and codec.

    Takes the arguments of :class:`CompressedRolloutBuffer`; ``compression_method`` and ``dtypes`` may be given by key.
    """
