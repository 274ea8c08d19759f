"""What a buffer holds besides observations, as a state."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.preprocessing import get_action_dim

from sb3_extra_buffers.checkpoints import State, StateError

#: Attributes that are no arrays and change while a buffer is used.
_SCALARS = {"pos": int, "full": bool, "generator_ready": bool, "_is_torn": bool}


def own_state(buffer: Any) -> State:
    """The arrays of numbers and the counters of a buffer, whatever its class."""
    found = State({name: kind(getattr(buffer, name)) for name, kind in _SCALARS.items() if hasattr(buffer, name)})
    found.arrays.update({name: getattr(buffer, name) for name in _arrays_of(buffer)})
    return found


def restore_own(buffer: Any, state: State) -> None:
    """Give a new buffer the arrays and counters of another one."""
    for name, kind in _SCALARS.items():
        if hasattr(buffer, name):
            setattr(buffer, name, state.fact(name, kind))
    state.number("pos", 0, buffer.buffer_size)
    own, saved = _arrays_of(buffer), set(state.arrays)
    if own != saved:
        raise StateError(f"the arrays {sorted(own ^ saved)} are not those of the class")
    for name in sorted(own):
        old, new = getattr(buffer, name), state.arrays[name]
        # A rollout that was looked at has its environments one behind the other.
        if old.dtype != new.dtype or old.size != new.size or (old.shape != new.shape and not state.facts.get("full")):
            raise StateError(f"{name!r} is {new.dtype} of shape {new.shape}, expected {old.dtype} of {old.shape}")
        setattr(buffer, name, new)


def check_claims(state: State, arguments: dict[str, Any]) -> None:
    """Refuse sizes that the arrays of a file do not have, before a constructor allocates memory for them."""
    n_envs, rows = arguments["n_envs"], arguments["buffer_size"]
    rewards, actions = state.arrays["own/rewards"], state.arrays["own/actions"]
    fits = type(n_envs) is int and type(rows) is int and n_envs >= 1 and rows >= 1
    action_space = arguments["action_space"]
    if not fits or not isinstance(action_space, spaces.Space):
        raise StateError("sizes or spaces are missing")
    steps = rewards.size // n_envs
    if rewards.size % n_envs or steps < 1 or rows not in (steps, steps * n_envs):
        raise StateError(f"{rows} rows of {n_envs} environments are claimed, there are {rewards.size} rewards")
    if actions.size != rewards.size * get_action_dim(action_space):
        raise StateError(f"there are {actions.size} numbers of actions for {rewards.size} rewards")


def _arrays_of(buffer: Any) -> set[str]:
    """The names of all arrays of numbers that outlive a batch."""
    arrays = {name for name, value in vars(buffer).items() if isinstance(value, np.ndarray)}
    return {name for name in arrays - set(buffer._transient) if getattr(buffer, name).dtype.kind in "biuf"}
