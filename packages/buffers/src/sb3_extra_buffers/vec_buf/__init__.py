"""Buffers that pass everything on to several other buffers, to compare them on one stream of experience."""

from sb3_extra_buffers.vec_buf.buffers import DummyVecReplayBuffer, DummyVecRolloutBuffer

__all__ = ["DummyVecReplayBuffer", "DummyVecRolloutBuffer"]
