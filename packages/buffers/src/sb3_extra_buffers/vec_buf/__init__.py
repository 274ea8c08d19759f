"""Buffers that hand everything on to several others: one stream, many buffers to compare."""

from importlib.util import find_spec

from sb3_extra_buffers.errors import MissingExtraError

if find_spec("stable_baselines3") is None:
    raise MissingExtraError("sb3_extra_buffers.vec_buf", "stable-baselines3", "sb3")

from sb3_extra_buffers.vec_buf.replay_buffer import DummyVecReplayBuffer
from sb3_extra_buffers.vec_buf.rollout_buffer import DummyVecRolloutBuffer

__all__ = ["DummyVecReplayBuffer", "DummyVecRolloutBuffer"]
