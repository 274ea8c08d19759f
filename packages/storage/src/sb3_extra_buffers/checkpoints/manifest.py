"""The manifest of a checkpoint: which bytes of which segments are its state. Whoever replaces it commits."""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.checkpoints.array_file import ArrayFile, open_arrays
from sb3_extra_buffers.checkpoints.dtypes import BY_NAME, name_of
from sb3_extra_buffers.checkpoints.layout import HeaderError, checked_shape
from sb3_extra_buffers.checkpoints.segments import Segment, Segments
from sb3_extra_buffers.checkpoints.writing import as_bytes, write
from sb3_extra_buffers.errors import (
    FileContentError,
    FileDamagedError,
    FileMissingError,
    FileVersionError,
    ForeignFileError,
)

KIND = "checkpoint"
NAME = "manifest.safetensors"
#: Of what the manifest says, and of the state of every part.
VERSION = 1
#: Arrays are cut into blocks of this size; those that have not changed stay where they are.
BLOCK_NBYTES = 1 << 18
#: Smaller arrays stand in the manifest itself.
MAX_INLINE_NBYTES = 1 << 12
DIGEST_NBYTES = 16
_INLINE = "array/"


def digest(block: memoryview) -> bytes:
    """By which a block that has changed is told: two blocks that differ do not have the same one."""
    return sha256(block).digest()[:DIGEST_NBYTES]


def blocks_of(array: NDArray[Any]) -> Iterator[memoryview]:
    """The bytes of a contiguous array, block by block."""
    content = as_bytes(array)
    for begin in range(0, len(content), BLOCK_NBYTES):
        yield content[begin : begin + BLOCK_NBYTES]


@dataclass(frozen=True)
class Blocked:
    """An array in blocks.

    :param dtype: of its elements
    :param shape: of the array
    :param files: for each block the number of its segment
    :param digests: for each block
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    files: list[int]
    digests: list[bytes]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def block_nbytes(self, index: int) -> int:
        """Size of a block."""
        return min(BLOCK_NBYTES, self.nbytes - index * BLOCK_NBYTES)


@dataclass(frozen=True)
class Stretch:
    """A part of a log: from one position to another, in a segment.

    :param begin: the position of the first byte
    :param end: behind the last
    :param file: the number of the segment
    """

    begin: int
    end: int
    file: int


@dataclass
class Manifest:
    """What a checkpoint is made of.

    :param about: what the owner of the state says about it
    :param facts: of the state
    :param inline: small arrays by name
    :param arrays: all others
    :param logs: by key
    :param segments: all that are needed, by number
    :param serial: by which it is told from others
    :param source: the segments that it was loaded from and that nobody has compared with their checksums yet
    """

    about: dict[str, Any]
    facts: dict[str, Any]
    inline: dict[str, NDArray[Any]] = field(default_factory=dict)
    arrays: dict[str, Blocked] = field(default_factory=dict)
    logs: dict[str, list[Stretch]] = field(default_factory=dict)
    segments: dict[int, Segment] = field(default_factory=dict)
    serial: str = field(default_factory=lambda: secrets.token_hex(16))
    source: Segments | None = field(default=None, compare=False, repr=False)

    def write(self, folder: Path) -> None:
        """Put it in place of the one that is there: from now on, this is the state."""
        digests = b"".join(part for array in self.arrays.values() for part in array.digests)
        said = {
            "version": VERSION,
            "serial": self.serial,
            "about": self.about,
            "facts": self.facts,
            "arrays": {
                name: {"dtype": name_of(array.dtype), "shape": list(array.shape), "files": array.files}
                for name, array in self.arrays.items()
            },
            "logs": {key: [[part.begin, part.end, part.file] for part in parts] for key, parts in self.logs.items()},
            "segments": {str(number): [part.nbytes, *part.sums] for number, part in self.segments.items()},
        }
        inline = {f"{_INLINE}{name}": array for name, array in self.inline.items()}
        write(folder / NAME, {"digests": np.frombuffer(digests, np.uint8), **inline}, said, KIND)


def read_manifest(folder: Path, verify: bool = True) -> Manifest:
    """Read what a folder holds.

    :param folder: of the checkpoint
    :param verify: whether to compare small arrays with their checksums
    """
    path = folder / NAME
    if not folder.exists():
        raise FileMissingError(str(folder), "Check the path: a checkpoint is the folder that save() was given.")
    if folder.is_dir() and not path.exists():
        hint = "If a first save was interrupted there, nothing was saved yet."
        raise ForeignFileError(str(folder), f"the folder has no {NAME}", hint)
    if folder.is_file():
        raise ForeignFileError(str(folder), "a checkpoint is a folder, this is a file")
    with open_arrays(path, KIND, verify) as file:
        try:
            return _parsed(file)
        except HeaderError as error:
            hint = "It was altered, or made by other code: use another copy of it."
            raise FileContentError(str(path), "a checkpoint", f"what no state is made of: {error}", hint) from None
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, FileVersionError):
                raise
            problem = f"the manifest does not fit together ({type(error).__name__}: {error})"
            raise FileDamagedError(str(path), (problem,)) from None


def _parsed(file: ArrayFile) -> Manifest:
    said = file.metadata
    if _whole(said["version"]) > VERSION:
        raise FileVersionError(str(file.path), said["version"], VERSION)
    arrays, digests, done = {}, file["digests"].tobytes(), 0
    for name, entry in said["arrays"].items():
        dtype, numbers = BY_NAME[entry["dtype"]], [_whole(number) for number in entry["files"]]
        found = Blocked(dtype, checked_shape(name, dtype, entry["shape"]), numbers, [])
        count = -(-found.nbytes // BLOCK_NBYTES)
        if len(numbers) != count:
            raise ValueError(f"{name!r} has {len(numbers)} blocks")
        part = digests[done : done + count * DIGEST_NBYTES]
        found.digests.extend(part[at : at + DIGEST_NBYTES] for at in range(0, len(part), DIGEST_NBYTES))
        done += len(part)
        arrays[name] = found
    if done != len(digests):
        raise ValueError("digests are missing")
    logs = {key: [Stretch(*map(_whole, part)) for part in parts] for key, parts in said["logs"].items()}
    segments = {}
    for number, (nbytes, *sums) in said["segments"].items():
        segments[int(number)] = Segment(_whole(nbytes), (_whole(sums[0]), _whole(sums[1])))
    inline = {name[len(_INLINE) :]: file[name].copy() for name in file if name.startswith(_INLINE)}
    about, facts = dict(said["about"]), dict(said["facts"])
    return Manifest(about, facts, inline, arrays, logs, segments, str(said["serial"]))


def _whole(number: Any) -> int:
    if type(number) is not int or number < 0:
        raise ValueError(f"{number!r} is no number")
    return number
