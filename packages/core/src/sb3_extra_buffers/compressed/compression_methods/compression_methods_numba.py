"""Import path of the published package: compile before forking."""

from sb3_extra_buffers.compressed.jit import init_jit

__all__ = ["init_jit"]
