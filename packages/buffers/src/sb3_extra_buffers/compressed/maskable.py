"""Rollout buffers for ``MaskablePPO`` of sb3-contrib."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from sb3_contrib.common.maskable.buffers import MaskableDictRolloutBuffer, MaskableRolloutBuffer

from sb3_extra_buffers.checkpoints import State, StateError
from sb3_extra_buffers.compressed.dict_rollout_buffer import CompressedDictRolloutBuffer
from sb3_extra_buffers.compressed.rollout_buffer import CompressedRolloutBuffer


class _WithMasks(CompressedRolloutBuffer):
    """Looks at what a file claims about masks, for which sb3-contrib allocates memory."""

    @classmethod
    def _check_claims(cls, state: State, arguments: dict[str, Any]) -> None:
        super()._check_claims(state, arguments)
        space, count = arguments["action_space"], state.arrays["own/rewards"].size
        masks = 2 * np.prod(space.shape) if isinstance(space, spaces.MultiBinary) else 0
        masks = space.n if isinstance(space, spaces.Discrete) else masks
        masks = int(space.nvec.sum()) if isinstance(space, spaces.MultiDiscrete) else int(masks)
        if masks * count != state.arrays["own/action_masks"].size:
            raise StateError(f"there are {masks} masks for each action")


class CompressedMaskableRolloutBuffer(_WithMasks, MaskableRolloutBuffer):  # type: ignore[misc]  # sb3-contrib passes *args on
    """
    A ``MaskableRolloutBuffer`` that stores observations compressed.

    Takes the arguments of :class:`CompressedRolloutBuffer`.
    """


class CompressedMaskableDictRolloutBuffer(_WithMasks, CompressedDictRolloutBuffer, MaskableDictRolloutBuffer):  # type: ignore[misc]  # sb3-contrib passes *args on
    """
    A ``MaskableDictRolloutBuffer`` that stores observations compressed.

    Takes the arguments of :class:`CompressedDictRolloutBuffer`.
    """
