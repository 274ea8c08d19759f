"""How kernels are compiled: when this package is first used, without the interpreter lock, kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import config, njit

F = TypeVar("F", bound=Callable[..., Any])

# error_model: like C, a division by zero is not checked for; there is none.
# No parallel=True: its OpenMP runtime kills forked children. Threads are the business of the caller.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


if config.DISABLE_JIT:  # type: ignore[attr-defined]  # set from the environment
    raise ImportError("NUMBA_DISABLE_JIT is set, and these kernels work on addresses, which only compiled code can")


def helper(function: F) -> F:
    """A function that kernels call; compiled with them."""
    compiled: F = njit(forceinline=True, **_OPTIONS)(function)
    return compiled


def kernel(signature: Any) -> Callable[[F], F]:
    """A function that Python calls. It is compiled here and now, or loaded from the disk cache."""

    def decorate(function: F) -> F:
        compiled: F
        try:
            compiled = njit(signature, cache=True, **_OPTIONS)(function)
        except (RuntimeError, OSError) as error:
            if isinstance(error, RuntimeError) and "cannot cache function" not in str(error):
                raise
            # No place for the cache is writable, or the disk is full: compile in every process instead.
            compiled = njit(signature, **_OPTIONS)(function)
        return compiled

    return decorate
