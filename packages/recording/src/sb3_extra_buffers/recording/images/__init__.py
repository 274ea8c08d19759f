"""The frames of a recording: how they are checked, and how they are kept."""

from sb3_extra_buffers.recording.images.channels import AUTO, CHANNELS, FrameForm
from sb3_extra_buffers.recording.images.compressed import CompressedImages
from sb3_extra_buffers.recording.images.plain import PlainImages
from sb3_extra_buffers.recording.images.protocol import Images

__all__ = ["AUTO", "CHANNELS", "CompressedImages", "FrameForm", "Images", "PlainImages"]
