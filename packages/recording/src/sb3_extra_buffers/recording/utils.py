"""Import path of the published package."""

from sb3_extra_buffers.recording.base_buffer import force_alloc_mem

__all__ = ["force_alloc_mem"]
