"""How kernels are compiled: when this package is first used, without the interpreter lock, kept on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from numba import config, njit

from sb3_extra_buffers.frames import streams

F = TypeVar("F", bound=Callable[..., Any])

# error_model: like C, a division by zero is not checked for; there is none.
# No parallel=True: its OpenMP runtime kills forked children. Threads are the business of the caller.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


if config.DISABLE_JIT:  # type: ignore[attr-defined]  # set from the environment
    raise ImportError("NUMBA_DISABLE_JIT is set, and these kernels work on addresses, which only compiled code can")


def _digest() -> str:
    """A digest of all sources that kernels are made of."""
    digest = hashlib.sha256()
    for folder in (Path(__file__).parent, Path(streams.__file__).parent):
        for path in sorted(folder.glob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


_SOURCES = _digest()


def helper(function: F) -> F:
    """A function that kernels call; compiled with them."""
    compiled: F = njit(forceinline=True, **_OPTIONS)(function)
    return compiled


def kernel(signature: Any) -> Callable[[F], F]:
    """A function that Python calls. It is compiled here and now, or loaded from the disk cache."""

    def decorate(function: F) -> F:
        try:
            dispatcher = njit(cache=True, **_OPTIONS)(function)
            # numba compares the time stamp of the file that a kernel is in; what it calls may be in others.
            stamped = dispatcher._cache._cache_file
            stamped._source_stamp = (stamped._source_stamp, _SOURCES)
            dispatcher.compile(signature)
            dispatcher.disable_compile()
        except (RuntimeError, OSError, AttributeError) as error:
            if isinstance(error, RuntimeError) and "cannot cache function" not in str(error):
                raise
            # No place for the cache is writable, the disk is full, or this numba keeps its stamps elsewhere: compile in
            # every process instead.
            dispatcher = njit(signature, **_OPTIONS)(function)
        compiled: F = dispatcher
        return compiled

    return decorate
