"""Checkpoints of buffers: ``save``, ``load`` and ``inspect``."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from gymnasium import spaces

from sb3_extra_buffers import heaps
from sb3_extra_buffers.checkpoints import Manifest, StateError, load_state, read_manifest, save_state
from sb3_extra_buffers.checkpoints.manifest import folder_nbytes
from sb3_extra_buffers.compressed.buffer_state import refuse_undeclared
from sb3_extra_buffers.compressed.json import from_json, to_json
from sb3_extra_buffers.errors import ExtraBuffersError, FileContentError
from sb3_extra_buffers.stores import Claimed

if TYPE_CHECKING:
    from sb3_extra_buffers.compressed.base import BaseCompressedBuffer

Buffer = TypeVar("Buffer", bound="BaseCompressedBuffer")

#: The last checkpoint of each buffer, saved or loaded. Copies and pickles of a buffer do not have it.
_known: WeakKeyDictionary[Any, Manifest] = WeakKeyDictionary()
#: What constructors and numpy raise for arguments and numbers of a damaged checkpoint.
_MISFITS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)


def save(buffer: BaseCompressedBuffer, path: str | os.PathLike[str]) -> None:
    """Save a buffer to a folder. See :meth:`BaseCompressedBuffer.save`."""
    name = type(buffer).__name__
    given, state = buffer._arguments(), buffer._state()
    refuse_undeclared(buffer, given, state)
    about = {
        "class": name,
        "arguments": {key: to_json(name, key, value) for key, value in given.items()},
        "transitions": buffer._kept_rows() * buffer.n_envs,
        "codecs": {key: array.codec for key, array in buffer._storage.observations.items()},
        "library": version("sb3-extra-buffers"),
    }
    _known[buffer] = save_state(path, state, about, _known.get(buffer))


def load(
    kind: type[Buffer], path: str | os.PathLike[str], device: Any, verify: bool, replaced: Mapping[str, Any]
) -> Buffer:
    """Load a buffer from a folder. See :meth:`BaseCompressedBuffer.load`."""
    state, manifest = load_state(path, verify)
    saved = manifest.about.get("class")
    if saved != kind.__name__:
        raise FileContentError(str(path), f"a {kind.__name__}", f"a {saved}", f"Use {saved}.load().")
    try:
        arguments = {key: from_json(value) for key, value in dict(manifest.about["arguments"]).items()}
        kind._check_claims(state, arguments)
        if "heap_kwargs" in arguments:
            arguments["heap_kwargs"] = _heap_parameters(path, arguments, replaced.get("heap_kwargs"))
        arguments |= {"device": device, **kind._replaced(arguments, replaced)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # these were shown when the buffer was made
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
            {key: from_json(value) for key, value in dict(about["arguments"]).items()},
            int(about["transitions"]),
            dict(about["codecs"]),
            folder_nbytes(folder),
            str(about["library"]),
        )
    except (StateError, *_MISFITS) as error:
        raise FileContentError(str(path), "a buffer", f"an unreadable summary ({error})") from error
