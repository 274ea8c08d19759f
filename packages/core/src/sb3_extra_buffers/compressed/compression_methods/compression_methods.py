"""Import path of the published package: the flags and functions of the package around it."""

from typing import Any

from sb3_extra_buffers.compressed import compression_methods as _package
from sb3_extra_buffers.compressed.availability import has_igzip, has_lz4, has_numba, has_zstd

__all__ = ["has_igzip", "has_lz4", "has_numba", "has_zstd"]


def __getattr__(name: str) -> Any:
    return getattr(_package, name)
