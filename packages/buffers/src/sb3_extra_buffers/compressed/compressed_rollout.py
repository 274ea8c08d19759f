"""Where the published package had its rollout buffers: models that it saved name this module."""

from sb3_extra_buffers.compressed.dict_rollout_buffer import CompressedDictRolloutBuffer
from sb3_extra_buffers.compressed.rollout_buffer import CompressedRolloutBuffer

__all__ = ["CompressedDictRolloutBuffer", "CompressedRolloutBuffer"]
