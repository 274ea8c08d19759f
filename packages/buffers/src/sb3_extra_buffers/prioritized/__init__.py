"""Off-policy algorithms with prioritized replay, and the mixin that gives it to others.

Each name is imported when it is first used; those of sb3-contrib are the only ones that need it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sb3_extra_buffers.errors import MissingExtraError

if TYPE_CHECKING:
    from sb3_extra_buffers.prioritized.algorithms import (
        PrioritizedDDPG,
        PrioritizedDQN,
        PrioritizedSAC,
        PrioritizedTD3,
    )
    from sb3_extra_buffers.prioritized.contrib import PrioritizedCrossQ, PrioritizedQRDQN, PrioritizedTQC
    from sb3_extra_buffers.prioritized.mixin import PrioritizedReplay

_HOMES = {
    "PrioritizedCrossQ": "contrib",
    "PrioritizedDDPG": "algorithms",
    "PrioritizedDQN": "algorithms",
    "PrioritizedQRDQN": "contrib",
    "PrioritizedReplay": "mixin",
    "PrioritizedSAC": "algorithms",
    "PrioritizedTD3": "algorithms",
    "PrioritizedTQC": "contrib",
}

__all__ = [
    "PrioritizedCrossQ",
    "PrioritizedDDPG",
    "PrioritizedDQN",
    "PrioritizedQRDQN",
    "PrioritizedReplay",
    "PrioritizedSAC",
    "PrioritizedTD3",
    "PrioritizedTQC",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "sb3_contrib":
            raise
        raise MissingExtraError(name, "sb3-contrib", "contrib") from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
