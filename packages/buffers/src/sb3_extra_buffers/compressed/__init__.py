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
    from sb3_extra_buffers.compressed.base import BaseCompressedBuffer
    from sb3_extra_buffers.compressed.callbacks import BufferCheckpointCallback, BufferMemoryCallback
    from sb3_extra_buffers.compressed.checkpoint import Checkpoint, inspect
    from sb3_extra_buffers.compressed.contrib import (
        CompressedMaskableDictRolloutBuffer,
        CompressedMaskableRolloutBuffer,
        CompressedRecurrentDictRolloutBuffer,
        CompressedRecurrentRolloutBuffer,
    )
    from sb3_extra_buffers.compressed.conversion import compress_rollouts, convert
    from sb3_extra_buffers.compressed.her_replay_buffer import CompressedHerReplayBuffer
    from sb3_extra_buffers.compressed.n_step_replay_buffer import CompressedDictNStepReplayBuffer
    from sb3_extra_buffers.compressed.prioritized_replay_buffer import (
        CompressedDictPrioritizedReplayBuffer,
        CompressedPrioritizedReplayBuffer,
        DictPrioritizedReplayBufferSamples,
        PrioritizedReplayBufferSamples,
    )
    from sb3_extra_buffers.compressed.replay_buffer import (
        CompressedDictReplayBuffer,
        CompressedNStepReplayBuffer,
        CompressedReplayBuffer,
    )
    from sb3_extra_buffers.compressed.report import KeyReport, MemoryReport
    from sb3_extra_buffers.compressed.rollout_buffer import CompressedDictRolloutBuffer, CompressedRolloutBuffer
    from sb3_extra_buffers.compressed.transitions import SequenceSamples
    from sb3_extra_buffers.compressed.utils import (
        DummyCls,
        find_buffer_dtypes,
        find_smallest_dtype,
        has_igzip,
        has_lz4,
        has_numba,
        has_zstd,
        init_jit,
    )

#: The names in each module; all others are in ``utils``.
_HOMES = {
    "base": ("BaseCompressedBuffer",),
    "callbacks": ("BufferCheckpointCallback", "BufferMemoryCallback"),
    "checkpoint": ("Checkpoint", "inspect"),
    "compressed_array": ("CompressedArray",),
    "contrib": (
        *("CompressedMaskableDictRolloutBuffer", "CompressedMaskableRolloutBuffer"),
        *("CompressedRecurrentDictRolloutBuffer", "CompressedRecurrentRolloutBuffer"),
    ),
    "conversion": ("compress_rollouts", "convert"),
    "her_replay_buffer": ("CompressedHerReplayBuffer",),
    "n_step_replay_buffer": ("CompressedDictNStepReplayBuffer",),
    "prioritized_replay_buffer": (
        *("CompressedDictPrioritizedReplayBuffer", "CompressedPrioritizedReplayBuffer"),
        *("DictPrioritizedReplayBufferSamples", "PrioritizedReplayBufferSamples"),
    ),
    "replay_buffer": ("CompressedDictReplayBuffer", "CompressedNStepReplayBuffer", "CompressedReplayBuffer"),
    "report": ("KeyReport", "MemoryReport"),
    "rollout_buffer": ("CompressedDictRolloutBuffer", "CompressedRolloutBuffer"),
    "transitions": ("SequenceSamples",),
}
#: Packages that a user may lack, and the extra that brings each.
_EXTRAS = {"sb3_contrib": "contrib", "stable_baselines3": "sb3", "torch": "sb3", "gymnasium": "sb3"}

__all__ = [
    "BaseCompressedBuffer",
    "BufferCheckpointCallback",
    "BufferMemoryCallback",
    "Checkpoint",
    "CompressedArray",
    "CompressedDictNStepReplayBuffer",
    "CompressedDictPrioritizedReplayBuffer",
    "CompressedDictReplayBuffer",
    "CompressedDictRolloutBuffer",
    "CompressedHerReplayBuffer",
    "CompressedMaskableDictRolloutBuffer",
    "CompressedMaskableRolloutBuffer",
    "CompressedNStepReplayBuffer",
    "CompressedPrioritizedReplayBuffer",
    "CompressedRecurrentDictRolloutBuffer",
    "CompressedRecurrentRolloutBuffer",
    "CompressedReplayBuffer",
    "CompressedRolloutBuffer",
    "DictPrioritizedReplayBufferSamples",
    "DummyCls",
    "KeyReport",
    "MemoryReport",
    "PrioritizedReplayBufferSamples",
    "SequenceSamples",
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
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = next((home for home, names in _HOMES.items() if name in names), "utils")
    try:
        return getattr(import_module(f"{__name__}.{home}"), name)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _EXTRAS:
            raise
        raise MissingExtraError(name, missing.replace("_", "-"), _EXTRAS[missing]) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
