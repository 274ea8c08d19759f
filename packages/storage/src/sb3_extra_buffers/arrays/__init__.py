"""Arrays whose cells are stored compressed. No torch, no Stable-Baselines3."""

from sb3_extra_buffers.arrays.array import CompressedArray
from sb3_extra_buffers.arrays.casting import fit

__all__ = ["CompressedArray", "fit"]
