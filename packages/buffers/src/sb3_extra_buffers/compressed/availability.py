"""Which optional codecs are installed, by the names of the published package."""

from __future__ import annotations

from sb3_extra_buffers.codecs import names


def has_numba() -> bool:
    """Whether ``rle-jit`` is installed."""
    return "rle-jit" in names()


def has_igzip() -> bool:
    """Whether ``igzip`` is installed."""
    return "igzip" in names()


def has_zstd() -> bool:
    """Whether ``zstd`` is installed."""
    return "zstd" in names()


def has_lz4() -> bool:
    """Whether ``lz4-frame`` and ``lz4-block`` are installed."""
    return {"lz4-frame", "lz4-block"} <= set(names())
