"""Import path of the published package: compile before forking."""

from sb3_extra_buffers.compressed.compression_methods import published
from sb3_extra_buffers.compressed.utils import init_jit

__all__ = ["init_jit"]

rle_numba_decompress = published
