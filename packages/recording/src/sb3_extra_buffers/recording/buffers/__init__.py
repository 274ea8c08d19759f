"""Recordings that are being made: the newest steps, in a ring."""

from sb3_extra_buffers.recording.buffers.base import BaseRecordBuffer
from sb3_extra_buffers.recording.buffers.dummy import DummyRecordBuffer
from sb3_extra_buffers.recording.buffers.frameless import FramelessRecordBuffer
from sb3_extra_buffers.recording.buffers.record_buffer import RecordBuffer

__all__ = ["BaseRecordBuffer", "DummyRecordBuffer", "FramelessRecordBuffer", "RecordBuffer"]
