"""Rollout buffers for ``MaskablePPO`` of sb3-contrib."""

from __future__ import annotations

from sb3_contrib.common.maskable.buffers import MaskableDictRolloutBuffer, MaskableRolloutBuffer

from sb3_extra_buffers.compressed.dict_rollout_buffer import CompressedDictRolloutBuffer
from sb3_extra_buffers.compressed.rollout_buffer import CompressedRolloutBuffer


class CompressedMaskableRolloutBuffer(CompressedRolloutBuffer, MaskableRolloutBuffer):  # type: ignore[misc]  # sb3-contrib passes *args on
    """
    A ``MaskableRolloutBuffer`` that stores observations compressed.

    Takes the arguments of :class:`CompressedRolloutBuffer`.
    """


class CompressedMaskableDictRolloutBuffer(CompressedDictRolloutBuffer, MaskableDictRolloutBuffer):  # type: ignore[misc]  # sb3-contrib passes *args on
    """
    A ``MaskableDictRolloutBuffer`` that stores observations compressed.

    Takes the arguments of :class:`CompressedDictRolloutBuffer`.
    """
