"""Checkpoints of buffers: save, load and inspect them, and the state of a buffer besides its observations."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.preprocessing import get_action_dim

from sb3_extra_buffers import heaps
from sb3_extra_buffers.checkpoints import Manifest, State, StateError, load_state, read_manifest, save_state
from sb3_extra_buffers.checkpoints.atomic import write_error
from sb3_extra_buffers.checkpoints.manifest import folder_nbytes
from sb3_extra_buffers.compressed.json import from_json, to_json
from sb3_extra_buffers.compressed.locking import forks_wait
from sb3_extra_buffers.errors import BufferStateError, ExtraBuffersError, FileContentError
from sb3_extra_buffers.stores import Claimed

if TYPE_CHECKING:
    from sb3_extra_buffers.compressed.base import BaseCompressedBuffer

Buffer = TypeVar("Buffer", bound="BaseCompressedBuffer")

#: The last checkpoint of each buffer, saved or loaded. Copies and pickles of a buffer do not have it.
_known: WeakKeyDictionary[Any, Manifest] = WeakKeyDictionary()
#: Errors of constructors and numpy for the content of a damaged checkpoint.
_MISFITS = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError),
    *(MemoryError, RecursionError, TypeError, ValueError),
)
#: Attributes that change while a buffer is used and are not arrays.
_SCALARS = {"pos": int, "full": bool, "generator_ready": bool, "_is_torn": bool}
#: Packages whose classes a checkpoint holds completely.
_KNOWN_PACKAGES = {"sb3_extra_buffers", "stable_baselines3", "sb3_contrib", "abc", "builtins", "typing"}
#: Attributes of these classes that are derived from arguments, saved under another name, or used for one batch only.
_KNOWN_ATTRIBUTES = {
    *("obs_shape", "action_dim", "device", "observations", "next_observations", "her_ratio", "infos"),
    *("mask_dims", "pad", "pad_and_flatten", "_options", "_storage", "_ahead", "_kept", "_is_sampling"),
}


def save(buffer: BaseCompressedBuffer, path: str | os.PathLike[str]) -> None:
    """Save a buffer to a folder. See :meth:`BaseCompressedBuffer.save`."""
    name = type(buffer).__name__
    given, state = buffer._arguments(), buffer._state()
    refuse_undeclared(buffer, given, state)
    try:
        library = version("sb3-extra-buffers")  # in a file
    except OSError as error:
        raise write_error(path, f"{name}.save", error) from error
    about = {
        "class": name,
        "arguments": {key: to_json(name, key, value) for key, value in given.items()},
        "transitions": buffer._kept_rows() * buffer.n_envs,
        "codecs": {key: array.codec for key, array in buffer._storage.observations.items()},
        "library": library,
    }
    _known[buffer] = save_state(path, state, about, _known.get(buffer))


def load(
    kind: type[Buffer], path: str | os.PathLike[str], device: Any, verify: bool | None, replaced: Mapping[str, Any]
) -> Buffer:
    """Load a buffer from a folder. See :meth:`BaseCompressedBuffer.load`."""
    state, manifest = load_state(path, verify)
    saved = manifest.about.get("class")
    if saved != kind.__name__:
        raise FileContentError(str(path), f"a {kind.__name__}", f"a {saved}", f"Use {saved}.load().")
    try:
        arguments = _arguments(path, manifest.about)
        kind._check_claims(state, arguments)
        if "heap_kwargs" in arguments:
            arguments["heap_kwargs"] = _heap_parameters(path, arguments, replaced.get("heap_kwargs"))
        arguments |= {"device": device, **kind._replaced(arguments, replaced)}
        with forks_wait(), warnings.catch_warnings():
            # Shown when the buffer was made. Other warnings are about this machine.
            warnings.filterwarnings("ignore", f"{kind.__name__}: dtypes asks for", UserWarning)
            buffer = kind(**arguments)
            buffer._restore(state)
    except ExtraBuffersError:
        raise
    except (StateError, *_MISFITS) as error:
        found = f"inconsistent content ({error if isinstance(error, StateError) else repr(error)})"
        hint = "It is damaged, or was made by other code. verify=True finds out which."
        raise FileContentError(str(path), f"a {kind.__name__}", found, hint) from error
    _known[buffer] = manifest
    return buffer


def _arguments(path: str | os.PathLike[str], about: Mapping[str, Any]) -> dict[str, Any]:
    pairs = [[key, value] for key, value in dict(about["arguments"]).items()]
    return from_json({"mapping": pairs}, folder_nbytes(Path(path)))  # type: ignore[no-any-return]


def _heap_parameters(
    path: str | os.PathLike[str], arguments: Mapping[str, Any], given: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """The parameters of a heap that a checkpoint may set. A warning names those that are not taken over.

    A heap declares which of its parameters describe a machine, such as folders: a file must not choose among these.
    """
    heap, saved = arguments["heap"], arguments["heap_kwargs"]
    if saved is None:
        return None
    plugin = heaps.registry.load(heap)
    found = {name: value for name, value in saved.items() if name not in plugin.local}
    lost = {name: value for name, value in saved.items() if name in plugin.local and name not in (given or ())}
    defaults = {name: plugin.parameters[name] for name in lost if name in plugin.parameters}
    if lost != defaults:
        warnings.warn(
            f"{os.fspath(path)}: the parameters {lost} of the heap {heap!r} were not taken over, because they describe "
            "the machine that saved the checkpoint. Give them again: load(..., heap_kwargs={...}). To use the defaults "
            f"without this warning, give {defaults}.",
            stacklevel=4,  # the caller of the load() of a class
        )
    if type(found.get("capacity")) is int:
        found["capacity"] = Claimed(found["capacity"])
    return found


@dataclass(frozen=True)
class Checkpoint:
    """Summary of a checkpoint.

    :param path: the folder
    :param buffer: name of the buffer's class
    :param arguments: of its constructor
    :param transitions: number of transitions that can be sampled
    :param codecs: the codec of each key
    :param nbytes: size of all files
    :param library: version that wrote it
    """

    path: Path
    buffer: str
    arguments: Mapping[str, Any]
    transitions: int
    codecs: Mapping[str, str]
    nbytes: int
    library: str

    @property
    def observation_space(self) -> spaces.Space[Any]:
        """The observation space."""
        return self.arguments["observation_space"]  # type: ignore[no-any-return]

    @property
    def action_space(self) -> spaces.Space[Any]:
        """The action space."""
        return self.arguments["action_space"]  # type: ignore[no-any-return]

    def __str__(self) -> str:
        lines = (
            f"{self.path}: {self.buffer}, {self.transitions:,} transitions, {self.nbytes:,} bytes on disk",
            f"  observations  {self.observation_space}",
            f"  actions       {self.action_space}",
            *(f"  stored        {key + ': ' if key else ''}{codec}" for key, codec in self.codecs.items()),
            f"  written by    sb3-extra-buffers {self.library}",
        )
        return "\n".join(lines)


def inspect(path: str | os.PathLike[str]) -> Checkpoint:
    """Summarise a checkpoint without loading it.

    :param path: the folder
    """
    folder, about = Path(path), read_manifest(Path(path)).about
    try:
        return Checkpoint(
            folder,
            str(about["class"]),
            _arguments(path, about),
            int(about["transitions"]),
            dict(about["codecs"]),
            folder_nbytes(folder),
            str(about["library"]),
        )
    except (StateError, *_MISFITS) as error:
        raise FileContentError(str(path), "a buffer", f"an unreadable summary ({error})") from error


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
    found = signature(kind).parameters.values()
    return {one.name for one in found if one.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)}


def _arrays_of(buffer: Any) -> set[str]:
    """The names of all arrays of numbers that are part of the state."""
    arrays = {name: value for name, value in vars(buffer).items() if isinstance(value, np.ndarray)}
    return {name for name, value in arrays.items() if value.dtype.kind in "biuf"} - _transient(buffer)


def _transient(buffer: Any) -> set[str]:
    """Attributes that a class or one of its bases lists as not saved."""
    return {name for kind in type(buffer).__mro__ for name in vars(kind).get("_transient", ())}
