"""How kernels are compiled: when this package is first used, without the interpreter lock, kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])

# error_model: like C, a division by zero is not checked for; there is none.
# No parallel=True: its OpenMP runtime kills forked children. Threads are the business of the caller.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


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
        except RuntimeError as error:
            if "cannot cache function" not in str(error):
                raise
            # No place on this machine is writable for the cache: compile in every process instead.
            compiled = njit(signature, **_OPTIONS)(function)
        return compiled

    return decorate
