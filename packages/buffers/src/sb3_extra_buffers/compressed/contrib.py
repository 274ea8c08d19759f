"""Rollout buffers for ``MaskablePPO`` and ``RecurrentPPO`` of sb3-contrib."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from gymnasium import spaces
from sb3_contrib.common.maskable.buffers import MaskableDictRolloutBuffer, MaskableRolloutBuffer
from sb3_contrib.common.recurrent.buffers import RecurrentDictRolloutBuffer, RecurrentRolloutBuffer

from sb3_extra_buffers.checkpoints import State, StateError
from sb3_extra_buffers.compressed.rollout_buffer import CompressedDictRolloutBuffer, CompressedRolloutBuffer


class _WithMasks(CompressedRolloutBuffer):
    """Checks the masks that a checkpoint claims, before sb3-contrib allocates memory for them."""

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
    """A ``MaskableRolloutBuffer`` that stores observations compressed.

    Takes the arguments of :class:`CompressedRolloutBuffer`.
    """


class CompressedMaskableDictRolloutBuffer(_WithMasks, CompressedDictRolloutBuffer, MaskableDictRolloutBuffer):  # type: ignore[misc]  # sb3-contrib passes *args on
    """A ``MaskableDictRolloutBuffer`` that stores observations compressed.

    Takes the arguments of :class:`CompressedDictRolloutBuffer`.
    """


class _WithHiddenStates(CompressedRolloutBuffer):
    """Takes ``hidden_state_shape``, which sb3-contrib puts before all other arguments."""

    _transient = ("seq_start_indices", "seq_end_indices")
    _prefetch_obstacle = "sequences are cut and padded when they are sampled"

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        hidden_state_shape: tuple[int, int, int, int],
        *args: Any,
        **kwargs: Any,
    ) -> None:
        kwargs["hidden_state_shape"] = hidden_state_shape
        super().__init__(buffer_size, observation_space, action_space, *args, **kwargs)

    def _arguments(self) -> dict[str, Any]:
        return {**super()._arguments(), "hidden_state_shape": tuple(self.hidden_state_shape)}  # type: ignore[attr-defined]

    @classmethod
    def _check_claims(cls, state: State, arguments: dict[str, Any]) -> None:
        super()._check_claims(state, arguments)
        if prod(arguments["hidden_state_shape"]) != state.arrays["own/hidden_states_pi"].size:
            raise StateError(f"hidden states have the shape {arguments['hidden_state_shape']}")


class CompressedRecurrentRolloutBuffer(  # type: ignore[misc]  # sb3-contrib passes *args on
    _WithHiddenStates, RecurrentRolloutBuffer
):
    """A ``RecurrentRolloutBuffer`` that stores observations compressed.

    ``RecurrentPPO`` takes no buffer class; :func:`compress_rollouts` puts this one into a model.

    :param hidden_state_shape: Shape of the buffer that will collect lstm states
        (n_steps, lstm.num_layers, n_envs, lstm.hidden_size)
    :param kwargs: All other arguments of :class:`CompressedRolloutBuffer`
    """


class CompressedRecurrentDictRolloutBuffer(  # type: ignore[misc]  # sb3-contrib passes *args on
    _WithHiddenStates, CompressedDictRolloutBuffer, RecurrentDictRolloutBuffer
):
    """A ``RecurrentDictRolloutBuffer`` that stores observations compressed.

    Takes the arguments of :class:`CompressedRecurrentRolloutBuffer`.
    """
