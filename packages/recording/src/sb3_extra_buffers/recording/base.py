"""Import path of the published package, which pickles of it name."""

from sb3_extra_buffers.recording.base_buffer import BaseRecordBuffer
from sb3_extra_buffers.recording.frameless_buffer import DummyArray

__all__ = ["BaseRecordBuffer", "DummyArray"]
