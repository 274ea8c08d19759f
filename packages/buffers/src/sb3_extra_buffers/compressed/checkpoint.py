"""``save``, ``load`` and ``inspect``: buffers in checkpoints."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from gymnasium import spaces

from sb3_extra_buffers.checkpoints import Manifest, StateError, load_state, read_manifest, save_state
from sb3_extra_buffers.checkpoints.manifest import folder_nbytes
from sb3_extra_buffers.compressed.argument_json import from_json, to_json
from sb3_extra_buffers.compressed.claimed_place import claimed_place, tell_of_place
from sb3_extra_buffers.compressed.subclasses import refuse_uncovered
from sb3_extra_buffers.errors import BufferStateError, ExtraBuffersError, FileContentError

if TYPE_CHECKING:
    from sb3_extra_buffers.compressed.base import BaseCompressedBuffer

Buffer = TypeVar("Buffer", bound="BaseCompressedBuffer")

#: What each buffer was last saved as, or loaded from. It does not travel with copies and pickles.
_known: WeakKeyDictionary[Any, Manifest] = WeakKeyDictionary()
#: What constructors and numpy raise for arguments and numbers that nobody has given them before.
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
    """Make a folder hold a buffer. See :meth:`BaseCompressedBuffer.save`."""
    name = type(buffer).__name__
    given, state = buffer._arguments(), buffer._state()
    refuse_uncovered(buffer, given, state)
    arguments = {key: to_json(name, key, value) for key, value in given.items()}
    about = {
        "class": name,
        "arguments": arguments,
        "transitions": buffer._kept_rows() * buffer.n_envs,
        "codecs": {key: array.codec for key, array in buffer._storage.observations.items()},
        "library": _library(),
    }
    _known[buffer] = save_state(path, state, about, _known.get(buffer))


def load(
    kind: type[Buffer], path: str | os.PathLike[str], device: Any, verify: bool, replaced: Mapping[str, Any]
) -> Buffer:
    """Build the buffer that a folder holds. See :meth:`BaseCompressedBuffer.load`."""
    state, manifest = load_state(path, verify)
    saved = manifest.about.get("class")
    if saved != kind.__name__:
        hint = f"Use {saved}.load()."
        raise FileContentError(str(path), f"a {kind.__name__}", f"a {saved}", hint)
    try:
        arguments = {key: from_json(value) for key, value in dict(manifest.about["arguments"]).items()}
        kind._check_claims(state, arguments)
        if "heap_kwargs" in arguments:
            tell_of_place(path, arguments["heap_kwargs"], replaced.get("heap_kwargs"))
            arguments["heap_kwargs"] = claimed_place(arguments["heap_kwargs"])
        arguments |= {"device": device, **kind._replaced(arguments, replaced)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # whoever made the buffer has seen what its constructor warns of
            buffer = kind(**arguments)
        try:
            buffer._restore(state)
        except BaseException:
            discard = getattr(buffer._storage.heap, "discard", None)
            if discard is not None:  # a heap with a path: its name would be taken when it is tried again
                discard()
            raise
    except ExtraBuffersError:
        raise
    except (StateError, *_MISFITS) as error:
        found = f"what does not fit together ({error if isinstance(error, StateError) else repr(error)})"
        hint = "It is damaged, or was made by other code. verify=True tells which."
        raise FileContentError(str(path), f"a {kind.__name__}", found, hint) from error
    _known[buffer] = manifest
    return buffer


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint holds.

    :param path: the folder
    :param buffer: the class
    :param arguments: what its constructor is called with
    :param transitions: how many can be sampled
    :param codecs: how observations are stored, by key
    :param nbytes: size of all files
    :param library: the version that wrote it
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
        lines = [
            f"{self.path}: {self.buffer}, {self.transitions:,} transitions, {self.nbytes:,} bytes on disk",
            f"  observations  {self.observation_space}",
            f"  actions       {self.action_space}",
            *(f"  stored        {key + ': ' if key else ''}{codec}" for key, codec in self.codecs.items()),
            f"  written by    sb3-extra-buffers {self.library}",
        ]
        return "\n".join(lines)


def inspect(path: str | os.PathLike[str]) -> Checkpoint:
    """
    What a checkpoint holds, without loading it.

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
        raise FileContentError(str(path), "a buffer", f"what cannot be read ({error})") from error


def refuse_replacing(kind: type[Any], names: set[str], allowed: tuple[str, ...]) -> None:
    """Refuse arguments that a saved buffer cannot be loaded with."""
    for name in sorted(names - set(allowed)):
        found = f"{name} is what was saved"
        raise BufferStateError(kind.__name__, f"load with another {name}", found, f"Allowed: {', '.join(allowed)}.")


def _library() -> str:
    try:
        return version("sb3-extra-buffers")
    except PackageNotFoundError:
        return "unknown"
