"""Import path of the published package, which models that it saved name."""

from sb3_extra_buffers.compressed.replay_buffer import CompressedDictReplayBuffer, CompressedReplayBuffer

__all__ = ["CompressedDictReplayBuffer", "CompressedReplayBuffer"]
