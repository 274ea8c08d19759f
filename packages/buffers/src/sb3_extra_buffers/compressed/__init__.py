"""Buffers for Stable-Baselines3 that store observations compressed.

Each name is imported when it is first used: a helper such as :func:`find_buffer_dtypes` does not import torch, and the
buffers for sb3-contrib are the only ones that need it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sb3_extra_buffers.errors import MissingExtraError

if TYPE_CHECKING:
    from sb3_extra_buffers.arrays import CompressedArray
    from sb3_extra_buffers.compressed.availability import has_igzip, has_lz4, has_numba, has_zstd
    from sb3_extra_buffers.compressed.base import BaseCompressedBuffer
    from sb3_extra_buffers.compressed.callbacks import BufferCheckpointCallback, BufferMemoryCallback
    from sb3_extra_buffers.compressed.checkpoint import Checkpoint, inspect
    from sb3_extra_buffers.compressed.conversion import convert
    from sb3_extra_buffers.compressed.dict_replay_buffer import CompressedDictReplayBuffer
    from sb3_extra_buffers.compressed.dict_rollout_buffer import CompressedDictRolloutBuffer
    from sb3_extra_buffers.compressed.dtypes import find_buffer_dtypes, find_smallest_dtype
    from sb3_extra_buffers.compressed.dummy import DummyCls
    from sb3_extra_buffers.compressed.her_replay_buffer import CompressedHerReplayBuffer
    from sb3_extra_buffers.compressed.jit import init_jit
    from sb3_extra_buffers.compressed.maskable import (
        CompressedMaskableDictRolloutBuffer,
        CompressedMaskableRolloutBuffer,
    )
    from sb3_extra_buffers.compressed.n_step_replay_buffer import CompressedNStepReplayBuffer
    from sb3_extra_buffers.compressed.on_policy import compress_rollouts
    from sb3_extra_buffers.compressed.recurrent import (
        CompressedRecurrentDictRolloutBuffer,
        CompressedRecurrentRolloutBuffer,
    )
    from sb3_extra_buffers.compressed.replay_buffer import CompressedReplayBuffer
    from sb3_extra_buffers.compressed.report import KeyReport, MemoryReport
    from sb3_extra_buffers.compressed.rollout_buffer import CompressedRolloutBuffer

_HOMES = {
    "BaseCompressedBuffer": "base",
    "BufferCheckpointCallback": "callbacks",
    "BufferMemoryCallback": "callbacks",
    "Checkpoint": "checkpoint",
    "CompressedDictReplayBuffer": "dict_replay_buffer",
    "CompressedDictRolloutBuffer": "dict_rollout_buffer",
    "CompressedHerReplayBuffer": "her_replay_buffer",
    "CompressedMaskableDictRolloutBuffer": "maskable",
    "CompressedMaskableRolloutBuffer": "maskable",
    "CompressedNStepReplayBuffer": "n_step_replay_buffer",
    "CompressedRecurrentDictRolloutBuffer": "recurrent",
    "CompressedRecurrentRolloutBuffer": "recurrent",
    "CompressedReplayBuffer": "replay_buffer",
    "CompressedRolloutBuffer": "rollout_buffer",
    "DummyCls": "dummy",
    "KeyReport": "report",
    "MemoryReport": "report",
    "compress_rollouts": "on_policy",
    "convert": "conversion",
    "find_buffer_dtypes": "dtypes",
    "find_smallest_dtype": "dtypes",
    "has_igzip": "availability",
    "has_lz4": "availability",
    "has_numba": "availability",
    "has_zstd": "availability",
    "init_jit": "jit",
    "inspect": "checkpoint",
}
#: Packages that a user may lack, and the extra that brings each.
_EXTRAS = {"sb3_contrib": "contrib", "stable_baselines3": "sb3", "torch": "sb3", "gymnasium": "sb3"}

__all__ = [
    "BaseCompressedBuffer",
    "BufferCheckpointCallback",
    "BufferMemoryCallback",
    "Checkpoint",
    "CompressedArray",
    "CompressedDictReplayBuffer",
    "CompressedDictRolloutBuffer",
    "CompressedHerReplayBuffer",
    "CompressedMaskableDictRolloutBuffer",
    "CompressedMaskableRolloutBuffer",
    "CompressedNStepReplayBuffer",
    "CompressedRecurrentDictRolloutBuffer",
    "CompressedRecurrentRolloutBuffer",
    "CompressedReplayBuffer",
    "CompressedRolloutBuffer",
    "DummyCls",
    "KeyReport",
    "MemoryReport",
    "compress_rollouts",
    "convert",
    "find_buffer_dtypes",
    "find_smallest_dtype",
    "has_igzip",
    "has_lz4",
    "has_numba",
    "has_zstd",
    "init_jit",
    "inspect",
]


def __getattr__(name: str) -> Any:
    home = "sb3_extra_buffers.arrays" if name == "CompressedArray" else f"{__name__}.{_HOMES.get(name)}"
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(home), name)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _EXTRAS:
            raise
        raise MissingExtraError(name, missing.replace("_", "-"), _EXTRAS[missing]) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
