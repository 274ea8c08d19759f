"""Record what an agent sees and does, and look at it later. numpy and the core; no torch, no Stable-Baselines3.

The wrappers and the callback are imported when they are first used: they need Gymnasium or Stable-Baselines3.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sb3_extra_buffers.recording.buffers import (
    BaseRecordBuffer,
    DummyRecordBuffer,
    FramelessRecordBuffer,
    RecordBuffer,
)
from sb3_extra_buffers.recording.clip import Clip, Step
from sb3_extra_buffers.recording.dummy_array import DummyArray
from sb3_extra_buffers.recording.exports.extras import missing
from sb3_extra_buffers.recording.memory import MemoryUse
from sb3_extra_buffers.recording.recording import Recording
from sb3_extra_buffers.recording.saved import SavedRecording, load
from sb3_extra_buffers.recording.statistics import ActionHistogram, Statistics
from sb3_extra_buffers.recording.utils import force_alloc_mem

if TYPE_CHECKING:
    from sb3_extra_buffers.recording.callback import RecordCallback
    from sb3_extra_buffers.recording.wrappers.record_env import RecordEnv
    from sb3_extra_buffers.recording.wrappers.terminal_frame import TerminalFrame
    from sb3_extra_buffers.recording.wrappers.vec_record import VecRecord

_HOMES = {
    "RecordCallback": "callback",
    "RecordEnv": "wrappers.record_env",
    "TerminalFrame": "wrappers.terminal_frame",
    "VecRecord": "wrappers.vec_record",
}

__all__ = [
    "ActionHistogram",
    "BaseRecordBuffer",
    "Clip",
    "DummyArray",
    "DummyRecordBuffer",
    "FramelessRecordBuffer",
    "MemoryUse",
    "RecordBuffer",
    "RecordCallback",
    "RecordEnv",
    "Recording",
    "SavedRecording",
    "Statistics",
    "Step",
    "TerminalFrame",
    "VecRecord",
    "force_alloc_mem",
    "load",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        raise missing(error, name) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
