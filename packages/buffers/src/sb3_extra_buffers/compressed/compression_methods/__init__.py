"""Import paths of the published package: which codecs are installed."""

from typing import Any

from sb3_extra_buffers.compressed.availability import has_igzip, has_lz4, has_numba, has_zstd

__all__ = ["HAS_IGZIP", "HAS_LZ4", "HAS_NUMBA", "HAS_ZSTD", "has_igzip", "has_lz4", "has_numba", "has_zstd"]

_FLAGS = {"HAS_IGZIP": has_igzip, "HAS_LZ4": has_lz4, "HAS_NUMBA": has_numba, "HAS_ZSTD": has_zstd}


def __getattr__(name: str) -> Any:
    # Asked for when used, so that importing this module reads no metadata.
    if name in _FLAGS:
        return _FLAGS[name]()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
