"""Where the published package had its helpers."""

from sb3_extra_buffers.compressed.dtypes import find_buffer_dtypes, find_smallest_dtype

__all__ = ["find_buffer_dtypes", "find_smallest_dtype"]
