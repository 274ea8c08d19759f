"""The rules of the codec contract, one file for each thing that can go wrong. Importing this enters them all."""

from sb3_extra_buffers.testing.codec_rules import (
    batches,
    buffers,
    content,
    damage,
    declarations,
    golden,
    processes,
)
from sb3_extra_buffers.testing.codec_subject import CODEC_RULES

__all__ = ["CODEC_RULES", "batches", "buffers", "content", "damage", "declarations", "golden", "processes"]
