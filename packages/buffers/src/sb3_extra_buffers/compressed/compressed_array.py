"""Where the published package had its array."""

from sb3_extra_buffers.arrays import CompressedArray

__all__ = ["CompressedArray"]
