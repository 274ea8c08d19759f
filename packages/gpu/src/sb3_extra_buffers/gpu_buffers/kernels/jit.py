"""Triton's decorator, typed. Triton has no stubs: what is decorated is ``Any``, and only that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import triton


def jit(function: Callable[..., Any]) -> Any:
    """A kernel, or a function that kernels call. It is compiled when it is first launched.

    :param function: its source is what is compiled
    """
    return triton.jit(function)
