"""Triton's ``jit`` decorator with a type: Triton has no stubs, so that the kernels are the only ``Any``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import triton


def jit(function: Callable[..., Any]) -> Any:
    """Declare a kernel, or a function that kernels call. It is compiled at its first launch.

    :param function: its source is compiled
    """
    return triton.jit(function)
