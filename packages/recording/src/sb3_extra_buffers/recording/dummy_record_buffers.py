"""Import path of the published package, which pickles of it name."""

from sb3_extra_buffers.recording.frameless_buffer import DummyRecordBuffer, FramelessRecordBuffer

__all__ = ["DummyRecordBuffer", "FramelessRecordBuffer"]
