"""Import path of the published package: compile before forking."""

from sb3_extra_buffers.compressed.compression_methods.pickled import published
from sb3_extra_buffers.compressed.jit import init_jit

__all__ = ["init_jit"]

rle_numba_decompress = published
