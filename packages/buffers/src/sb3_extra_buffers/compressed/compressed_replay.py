"""Where the published package had its replay buffers: models that it saved name this module."""

from sb3_extra_buffers.compressed.dict_replay_buffer import CompressedDictReplayBuffer
from sb3_extra_buffers.compressed.replay_buffer import CompressedReplayBuffer

__all__ = ["CompressedDictReplayBuffer", "CompressedReplayBuffer"]
