"""Import path of the published package, which models that it saved name."""

from sb3_extra_buffers.compressed.rollout_buffer import CompressedDictRolloutBuffer, CompressedRolloutBuffer

__all__ = ["CompressedDictRolloutBuffer", "CompressedRolloutBuffer"]
