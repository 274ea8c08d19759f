"""What is kept of each step besides its frame: a reward, an action and features."""

from sb3_extra_buffers.recording.columns.actions import Actions
from sb3_extra_buffers.recording.columns.features import Features
from sb3_extra_buffers.recording.columns.rewards import Rewards

__all__ = ["Actions", "Features", "Rewards"]
