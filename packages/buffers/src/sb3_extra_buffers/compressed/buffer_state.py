"""The state of a buffer besides its observations: its arrays and counters, and what subclasses declare."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter, signature
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.preprocessing import get_action_dim

from sb3_extra_buffers.checkpoints import State, StateError
from sb3_extra_buffers.errors import BufferStateError

#: Attributes that change while a buffer is used and are not arrays.
_SCALARS = {"pos": int, "full": bool, "generator_ready": bool, "_is_torn": bool}
#: Packages whose classes a checkpoint holds completely.
_KNOWN_PACKAGES = {"sb3_extra_buffers", "stable_baselines3", "sb3_contrib", "abc", "builtins", "typing"}
#: Attributes of these classes that are derived from arguments, saved under another name, or used for one batch only.
_KNOWN_ATTRIBUTES = frozenset(
    {
        # stable_baselines3 and sb3_contrib
        *("obs_shape", "action_dim", "device", "observations", "next_observations", "her_ratio", "infos"),
        *("mask_dims", "pad", "pad_and_flatten"),
        # this library
        *("_options", "_storage", "_ahead", "_kept", "_is_sampling"),
    }
)


def own_state(buffer: Any) -> State:
    """The arrays of numbers and the counters of a buffer."""
    found = State({name: kind(getattr(buffer, name)) for name, kind in _SCALARS.items() if hasattr(buffer, name)})
    found.arrays.update({name: getattr(buffer, name) for name in _arrays_of(buffer)})
    return found


def restore_own(buffer: Any, state: State) -> None:
    """Set the arrays and counters of a new buffer."""
    for name, kind in _SCALARS.items():
        if hasattr(buffer, name):
            setattr(buffer, name, state.fact(name, kind))
    state.number("pos", 0, buffer.buffer_size)
    own, saved = _arrays_of(buffer), set(state.arrays)
    if own != saved:
        raise StateError(f"the arrays {sorted(own ^ saved)} are not those of the class")
    for name in sorted(own):
        old, new = getattr(buffer, name), state.arrays[name]
        # get() of a rollout buffer flattens its arrays.
        if old.dtype != new.dtype or old.size != new.size or (old.shape != new.shape and not state.facts.get("full")):
            raise StateError(f"{name!r} is {new.dtype} of shape {new.shape}, expected {old.dtype} of {old.shape}")
        setattr(buffer, name, new)


def check_claims(state: State, arguments: dict[str, Any]) -> None:
    """Compare the sizes that a file claims with its arrays, before a constructor allocates memory for them."""
    n_envs, rows = arguments["n_envs"], arguments["buffer_size"]
    rewards, actions = state.arrays["own/rewards"], state.arrays["own/actions"]
    are_sizes = type(n_envs) is int and type(rows) is int and n_envs >= 1 and rows >= 1
    if not are_sizes or not isinstance(arguments["action_space"], spaces.Space):
        raise StateError("sizes or spaces are missing")
    steps = rewards.size // n_envs
    if rewards.size % n_envs or steps < 1 or rows not in (steps, steps * n_envs):
        raise StateError(f"{rows} rows of {n_envs} environments are claimed, there are {rewards.size} rewards")
    if actions.size != rewards.size * get_action_dim(arguments["action_space"]):
        raise StateError(f"there are {actions.size} numbers of actions for {rewards.size} rewards")


def refuse_undeclared(buffer: Any, arguments: Mapping[str, Any], state: State) -> None:
    """Refuse to save a buffer whose class takes arguments or keeps attributes that a checkpoint would lose.

    This concerns classes outside of this library. They declare an argument in ``_arguments()``, an attribute in
    ``_state()`` and ``_restore()`` under the same name, and attributes that need not be saved in ``_transient``.
    Arrays of numbers are saved without a declaration.
    """
    kinds = type(buffer).__mro__
    others = [kind for kind in kinds if kind.__module__.partition(".")[0] not in _KNOWN_PACKAGES]
    if not others:
        return
    arrays = (name.removeprefix("own/") for name in state.arrays)
    saved = {*arguments, *state.facts, *state.facts.get("own", ()), *arrays, *_transient(buffer)}
    kept = {name for name in vars(buffer) if not {name, name.lstrip("_")} & saved} - _KNOWN_ATTRIBUTES
    ours = (kind for kind in kinds if kind not in others and kind is not object)
    taken = set().union(*(_parameters(kind) for kind in others if "__init__" in vars(kind)))
    taken -= saved.union(*(_parameters(kind) for kind in ours))
    if kept or taken:
        parts = [f"it takes {', '.join(sorted(taken))}"] if taken else []
        parts += [f"it keeps {', '.join(sorted(kept))}"] if kept else []
        hint = (
            "Add arguments to _arguments(), and attributes to _state() and _restore() under the same names; or list "
            "attributes that need not be saved in _transient. The page about checkpoints shows how."
        )
        found = f"{' and '.join(parts)}, which a checkpoint would not hold"
        raise BufferStateError(type(buffer).__name__, "save", found, hint)


def _parameters(kind: type[Any]) -> set[str]:
    """The named parameters of a constructor."""
    found = signature(kind).parameters.values()
    return {one.name for one in found if one.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)}


def _arrays_of(buffer: Any) -> set[str]:
    """The names of all arrays of numbers that are part of the state."""
    arrays = {name: value for name, value in vars(buffer).items() if isinstance(value, np.ndarray)}
    return {name for name, value in arrays.items() if value.dtype.kind in "biuf"} - _transient(buffer)


def _transient(buffer: Any) -> set[str]:
    """Attributes that a class or one of its bases lists as not saved."""
    return {name for kind in type(buffer).__mro__ for name in vars(kind).get("_transient", ())}
