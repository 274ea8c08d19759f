"""Observation spaces, as buffers see them."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.preprocessing import get_obs_shape

from sb3_extra_buffers.errors import ParameterError

#: The key of a space that has none.
NO_KEY = ""


def hollow(space: spaces.Space[Any]) -> spaces.Space[Any]:
    """The same space with empty observations.

    Constructors of Stable-Baselines3 allocate arrays for all observations, which would be thrown away at once. For one
    million Atari transitions that is 56 GB, which most machines refuse to allocate.
    """
    if isinstance(space, spaces.Dict):
        return spaces.Dict({key: hollow(part) for key, part in space.spaces.items()})
    return spaces.Box(0, 1, shape=(0,), dtype=np.dtype(space.dtype or np.float32).type)


def parts_of(space: spaces.Space[Any]) -> dict[str, spaces.Space[Any]]:
    """The parts of a space by key; a space without keys is its own only part."""
    return dict(space.spaces) if isinstance(space, spaces.Dict) else {NO_KEY: space}


def shape_of(part: spaces.Space[Any]) -> tuple[int, ...]:
    """The shape of one observation in a buffer."""
    shape = get_obs_shape(part)
    assert isinstance(shape, tuple)
    return tuple(int(axis) for axis in shape)


def check_kind(owner: str, space: spaces.Space[Any], *, is_dict: bool) -> None:
    """Refuse a Dict space for other buffers, any other space for Dict buffers, and nested Dict spaces."""
    parts = parts_of(space)
    is_flat = NO_KEY not in parts and not any(isinstance(part, spaces.Dict) for part in parts.values())
    if isinstance(space, spaces.Dict) and not is_flat:
        hint = "gymnasium.wrappers.FlattenObservation makes one level of several."
        raise ParameterError(owner, "observation_space", space, "keys must have names and no keys below", hint)
    if isinstance(space, spaces.Dict) == is_dict:
        return
    kind, family = "Rollout" if "Rollout" in owner else "Replay", "Gpu" if owner.startswith("Gpu") else "Compressed"
    allowed, other = ("it must be", "") if is_dict else ("it must not be", "Dict")
    hint = f"Use {family}{other}{kind}Buffer for it, or a buffer named for its model."
    raise ParameterError(owner, "observation_space", space, f"{allowed} a Dict space", hint)
