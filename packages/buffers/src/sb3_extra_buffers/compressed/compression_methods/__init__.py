"""Import paths of the published package: which codecs are installed, and names in its pickles."""

from typing import Any, NoReturn

from sb3_extra_buffers.compressed.utils import has_igzip, has_lz4, has_numba, has_zstd
from sb3_extra_buffers.errors import BufferStateError

__all__ = ["HAS_IGZIP", "HAS_LZ4", "HAS_NUMBA", "HAS_ZSTD", "has_igzip", "has_lz4", "has_numba", "has_zstd"]

_FLAGS = {"HAS_IGZIP": has_igzip, "HAS_LZ4": has_lz4, "HAS_NUMBA": has_numba, "HAS_ZSTD": has_zstd}


def __getattr__(name: str) -> Any:
    # Asked for when used, so that importing this module reads no metadata.
    if name in _FLAGS:
        return _FLAGS[name]()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def published(*_args: Any, **_kwargs: Any) -> NoReturn:
    """Stands for the functions that pickles of the published package name. Without it, loading such a pickle fails at
    the name of a function; with it, the buffer itself says what to do.
    """
    raise BufferStateError(
        "compression_methods",
        "run a function of a version before 1",
        "only its name is left, for buffers that were pickled with it",
        "Use sb3_extra_buffers.codecs.bind instead.",
    )
