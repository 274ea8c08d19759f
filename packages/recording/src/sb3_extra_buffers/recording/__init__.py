"""Record frames, rewards and actions of an agent, and read, save and export them. Needs numpy only.

The wrappers and the callback are imported on first use: they need Gymnasium or Stable-Baselines3.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sb3_extra_buffers.recording.base_buffer import BaseRecordBuffer, force_alloc_mem
from sb3_extra_buffers.recording.exports.extras import missing
from sb3_extra_buffers.recording.frameless_buffer import DummyArray, DummyRecordBuffer, FramelessRecordBuffer
from sb3_extra_buffers.recording.protocol import Clip, Recording, Step
from sb3_extra_buffers.recording.record_buffer import RecordBuffer
from sb3_extra_buffers.recording.saved_recording import SavedRecording, load
from sb3_extra_buffers.recording.statistics import ActionHistogram, MemoryUse, Statistics

if TYPE_CHECKING:
    from sb3_extra_buffers.recording.callback import RecordCallback
    from sb3_extra_buffers.recording.record_env import RecordEnv, TerminalFrame
    from sb3_extra_buffers.recording.vec_record import VecRecord

_LAZY = {
    "RecordCallback": "callback",
    "RecordEnv": "record_env",
    "TerminalFrame": "record_env",
    "VecRecord": "vec_record",
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
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
    except ModuleNotFoundError as error:
        raise missing(error, name) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
