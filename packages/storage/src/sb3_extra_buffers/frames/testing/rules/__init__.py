"""The rules for frame kernels. Importing this enters them all."""

from sb3_extra_buffers.frames.testing.rules import contiguity, damage, storage
from sb3_extra_buffers.frames.testing.subject import KERNEL_RULES

__all__ = ["KERNEL_RULES", "contiguity", "damage", "storage"]
