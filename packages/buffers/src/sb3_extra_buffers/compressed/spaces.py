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
    """The same space with nothing in it, so that who allocates an array for it allocates nothing.

    Constructors of Stable-Baselines3 allocate arrays for all observations, which would be thrown away at once. For one
    million Atari transitions that is 56 GB, which most machines refuse even if nobody touches them.
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
    """Refuse a space that belongs to the other kind of buffer.

    :param owner: the buffer's class
    :param space: the observation space
    :param is_dict: whether the buffer is for Dict spaces
    """
    if isinstance(space, spaces.Dict):
        for key, part in space.spaces.items():
            if isinstance(part, spaces.Dict) or not key:
                hint = "gymnasium.wrappers.FlattenObservation makes one level of several."
                raise ParameterError(owner, "observation_space", space, "keys must have names and no keys below", hint)
    if isinstance(space, spaces.Dict) == is_dict:
        return
    kind, family = "Rollout" if "Rollout" in owner else "Replay", "Gpu" if owner.startswith("Gpu") else "Compressed"
    if is_dict:
        hint = f"Use {family}{kind}Buffer for it, or a buffer named for its model."
        raise ParameterError(owner, "observation_space", space, "it must be a Dict space", hint)
    hint = f"Use {family}Dict{kind}Buffer for it, or a buffer named for its model."
    raise ParameterError(owner, "observation_space", space, "it must not be a Dict space", hint)
