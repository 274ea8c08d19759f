"""The files of a checkpoint: segments with bytes, and the manifest that says which bytes make up the state."""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.checkpoints.array_file import ArrayFile, open_arrays, write
from sb3_extra_buffers.checkpoints.checksums import UnreadBytes
from sb3_extra_buffers.checkpoints.format import (
    ALIGNMENT,
    DTYPE_NAMES,
    DTYPES,
    PAGE_ALIGNMENT,
    HeaderError,
    checked_number,
    checked_shape,
)
from sb3_extra_buffers.checkpoints.memory_map import allocate_mappable, can_map, is_mappable, is_page_aligned, map_over
from sb3_extra_buffers.errors import (
    FileContentError,
    FileDamagedError,
    FileMissingError,
    FileVersionError,
    ForeignFileError,
)
from sb3_extra_buffers.heaps.state import Piece, State

MANIFEST_NAME = "manifest.safetensors"
_MANIFEST_KIND = "checkpoint"
#: Version of the manifest and of the state of every part.
VERSION = 1
_SEGMENT_NAME = "segment-{:06d}.safetensors"
_SEGMENT_KIND = "segment"
#: Segments are kept small: one of which less than half is needed is written again.
MAX_SEGMENT_NBYTES = 1 << 26
#: Arrays are split into blocks of this size. A block that has not changed is not written again.
BLOCK_NBYTES = 1 << 18
#: Arrays up to this size are part of the manifest.
MAX_INLINE_NBYTES = 1 << 12
_DIGEST_NBYTES = 16
_INLINE = "array/"
#: Attempts to open a checkpoint while another process saves to the same folder.
_ATTEMPTS = 20
#: Checkpoints up to this size are verified unless the caller decides: that takes some hundredths of a second.
_SMALL_NBYTES = 1 << 26
#: An array in more runs than this is copied: a process may have a limited number of mappings.
_MAX_RUNS = 1024


def digest(block: memoryview) -> bytes:
    """A hash that identifies the content of a block."""
    return sha256(block).digest()[:_DIGEST_NBYTES]


@dataclass(frozen=True)
class BlockedArray:
    """An array stored as blocks, with the number of the segment and the digest of each of them."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    files: list[int]
    digests: list[bytes]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def block(self, index: int) -> tuple[int, str, int]:
        """The number of a block's segment, the block's name there, and its size."""
        return self.files[index], f"{self.name}#{index}", min(BLOCK_NBYTES, self.nbytes - index * BLOCK_NBYTES)


@dataclass
class LogPart:
    """The bytes of a log from a position to another one, in the segment with the number ``file``."""

    begin: int
    end: int
    file: int

    def name(self, key: str) -> str:
        return f"{key}@{self.begin}"


@dataclass(frozen=True)
class Segment:
    """What a manifest records about a segment: the size of its items, and checksums that identify its content."""

    nbytes: int
    sums: tuple[int, int]


@dataclass
class Manifest:
    """What a checkpoint consists of.

    :param about: the owner's description of the state
    :param facts: of the state
    :param inline: small arrays by name
    :param arrays: all other arrays
    :param logs: the parts of each log, by key
    :param segments: all segments that are needed, by number
    :param serial: identifies this manifest
    :param source: the segments it was loaded from
    """

    about: dict[str, Any]
    facts: dict[str, Any]
    inline: dict[str, NDArray[Any]] = field(default_factory=dict)
    arrays: dict[str, BlockedArray] = field(default_factory=dict)
    logs: dict[str, list[LogPart]] = field(default_factory=dict)
    segments: dict[int, Segment] = field(default_factory=dict)
    serial: str = field(default_factory=lambda: secrets.token_hex(16))
    source: Segments | None = field(default=None, compare=False, repr=False)

    def write(self, folder: Path) -> None:
        """Replace the manifest in a folder. This commits the checkpoint."""
        digests = b"".join(part for array in self.arrays.values() for part in array.digests)
        said = {
            "version": VERSION,
            "serial": self.serial,
            "about": self.about,
            "facts": self.facts,
            "arrays": {
                name: {"dtype": DTYPE_NAMES[array.dtype], "shape": list(array.shape), "files": array.files}
                for name, array in self.arrays.items()
            },
            "logs": {key: [[part.begin, part.end, part.file] for part in parts] for key, parts in self.logs.items()},
            "segments": {str(number): [part.nbytes, *part.sums] for number, part in self.segments.items()},
        }
        inline = {f"{_INLINE}{name}": array for name, array in self.inline.items()}
        write(folder / MANIFEST_NAME, {"digests": np.frombuffer(digests, np.uint8), **inline}, said, _MANIFEST_KIND)


def read_manifest(folder: Path, verify: bool = True) -> Manifest:
    """Read the manifest of a checkpoint.

    :param folder: of the checkpoint
    :param verify: compare the arrays in the manifest with their checksums
    """
    path = folder / MANIFEST_NAME
    if not folder.exists():
        raise FileMissingError(str(folder), "Check the path: a checkpoint is the folder that save() was given.")
    if folder.is_dir() and not path.exists():
        hint = "If a first save was interrupted there, nothing was saved yet."
        raise ForeignFileError(str(folder), f"the folder has no {MANIFEST_NAME}", hint)
    if folder.is_file():
        raise ForeignFileError(str(folder), "a checkpoint is a folder, this is a file")
    with open_arrays(path, _MANIFEST_KIND, verify) as file:
        try:
            return _parsed(file)
        except HeaderError as error:
            hint = "It was altered, or made by other code: use another copy of it."
            raise FileContentError(str(path), "a checkpoint", f"an invalid manifest entry: {error}", hint) from None
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, FileVersionError):
                raise
            problem = f"the manifest is inconsistent ({type(error).__name__}: {error})"
            raise FileDamagedError(str(path), (problem,)) from None


def _parsed(file: ArrayFile) -> Manifest:
    said = file.metadata
    if checked_number(said["version"]) > VERSION:
        raise FileVersionError(str(file.path), said["version"], VERSION)
    arrays, digests, done = {}, file["digests"].tobytes(), 0
    for name, entry in said["arrays"].items():
        dtype, numbers = DTYPES[entry["dtype"]], [checked_number(number) for number in entry["files"]]
        found = BlockedArray(name, dtype, checked_shape(name, dtype, entry["shape"]), numbers, [])
        count = -(-found.nbytes // BLOCK_NBYTES)
        if len(numbers) != count:
            raise ValueError(f"{name!r} has {len(numbers)} blocks")
        part = digests[done : done + count * _DIGEST_NBYTES]
        found.digests.extend(part[at : at + _DIGEST_NBYTES] for at in range(0, len(part), _DIGEST_NBYTES))
        done += len(part)
        arrays[name] = found
    if done != len(digests):
        raise ValueError("digests are missing")
    logs = {key: [LogPart(*map(checked_number, part)) for part in parts] for key, parts in said["logs"].items()}
    segments = {}
    for number, (nbytes, *sums) in said["segments"].items():
        segments[int(number)] = Segment(checked_number(nbytes), (checked_number(sums[0]), checked_number(sums[1])))
    inline = {name[len(_INLINE) :]: file[name].copy() for name in file if name.startswith(_INLINE)}
    about, facts = dict(said["about"]), dict(said["facts"])
    return Manifest(about, facts, inline, arrays, logs, segments, str(said["serial"]))


def folder_nbytes(folder: Path) -> int:
    """Size of all files of a checkpoint. Files that another process removes meanwhile are skipped."""
    found = 0
    try:
        for path in folder.iterdir():
            with suppress(FileNotFoundError):
                found += path.stat().st_size if path.is_file() else 0
    except FileNotFoundError:
        raise FileMissingError(str(folder)) from None
    return found


def segment_number(path: Path) -> int | None:
    """The number of a segment; ``None`` for other files."""
    digits = path.name.partition("-")[2].partition(".")[0]
    return int(digits) if digits.isdecimal() and path.name == _SEGMENT_NAME.format(int(digits)) else None


@dataclass(frozen=True)
class Item:
    """Bytes for a segment, and a function that records the number of the segment they were written to."""

    name: str
    content: NDArray[np.uint8]
    assign: Callable[[int], None]


def write_segments(folder: Path, items: Sequence[Item], number: int) -> dict[int, Segment]:
    """Write items to new segments that are numbered from ``number`` on, and return these."""
    found, pending, nbytes = {}, [], 0
    for place, item in enumerate(items, 1):
        pending.append(item)
        nbytes += item.content.nbytes
        if nbytes >= MAX_SEGMENT_NBYTES or place == len(items):
            path = folder / _SEGMENT_NAME.format(number)
            # Full blocks of arrays come first; they are page-aligned so that they can be mapped.
            alignment = ALIGNMENT if pending[0].content.nbytes % PAGE_ALIGNMENT else PAGE_ALIGNMENT
            write(path, {one.name: one.content for one in pending}, {}, _SEGMENT_KIND, alignment)
            found[number] = Segment(nbytes, open_arrays(path).sums)
            for one in pending:
                one.assign(number)
            pending, nbytes, number = [], 0, number + 1
    return found


class Segments:
    """The opened segments of a checkpoint, as its manifest records them. Only headers are read."""

    def __init__(self, folder: Path, known: dict[int, Segment]) -> None:
        self.files: dict[int, ArrayFile] = {}
        for number, segment in known.items():
            path = folder / _SEGMENT_NAME.format(number)
            file = self.files[number] = open_arrays(path, _SEGMENT_KIND)
            if file.sums != segment.sums:
                raise FileDamagedError(str(path), ("it is not the file that the manifest knows under this name",))

    def item(self, number: int, name: str, nbytes: int) -> NDArray[np.uint8]:
        """The bytes of an item; read-only and mapped."""
        return self.file_with(number, name, nbytes)[name]

    def file_with(self, number: int, name: str, nbytes: int) -> ArrayFile:
        file = self.files.get(number)
        entry = None if file is None else file.entries.get(name)
        if file is None or entry is None or entry.dtype != np.uint8 or entry.shape != (nbytes,):
            raise KeyError(f"{nbytes} bytes named {name!r} in segment {number}")
        return file


def load_state(path: str | os.PathLike[str], verify: bool | None = False) -> tuple[State, Manifest]:
    """Load the state from a folder. Logs and most arrays stay in their files until they are accessed.

    Arrays are compared with their checksums at once, logs when they are first read.

    :param path: of the folder
    :param verify: read everything and compare it with its checksums now; ``None``: if it has at most 64 MB
    :return: the state, and the manifest that lets :func:`save_state` write only what has changed
    """
    folder = Path(path)
    for _ in range(_ATTEMPTS):
        manifest = read_manifest(folder)
        try:
            segments = Segments(folder, manifest.segments)
        except FileMissingError as error:
            if read_manifest(folder).serial != manifest.serial:
                continue
            raise FileDamagedError(str(folder), (f"{Path(error.path).name} is missing",)) from None
        if verify is None:
            verify = sum(segment.nbytes for segment in manifest.segments.values()) <= _SMALL_NBYTES
        for file in segments.files.values() if verify else ():
            file.verify()
        manifest.source = segments
        try:
            return _assembled(manifest, segments, verify), manifest
        except KeyError as error:
            problem = f"it refers to {error.args[0]}, which are missing"
            raise FileDamagedError(str(folder / MANIFEST_NAME), (problem,)) from None
    raise FileDamagedError(str(folder), ("its files change faster than they can be opened",), "Try again.")


def _assembled(manifest: Manifest, segments: Segments, is_verified: bool) -> State:
    stored = {name: _StoredArray(array, segments, is_verified) for name, array in manifest.arrays.items()}
    arrays = manifest.inline | {name: found.array() for name, found in stored.items()}
    logs = {
        key: [(part.begin, segments.item(part.file, part.name(key), part.end - part.begin)) for part in parts]
        for key, parts in manifest.logs.items()
    }
    unread = None if is_verified else UnreadBytes(content for parts in logs.values() for _, content in parts)
    pieces = {key: [Piece(*part, unread) for part in parts] for key, parts in logs.items()}
    return State(manifest.facts, arrays, [], pieces, stored)


@dataclass
class _Run:
    """Whole pages of an array, from ``begin`` to ``end``, that are contiguous in a file, ``shift`` bytes further."""

    begin: int
    end: int
    file: ArrayFile
    shift: int


class _StoredArray:
    """An array whose blocks are in several segments, which stay mapped as long as this object exists.

    Whole pages are mapped, the rest is copied.
    """

    def __init__(self, blocked: BlockedArray, segments: Segments, is_verified: bool) -> None:
        # All blocks are looked up before memory is allocated, so a file cannot claim more than it has.
        self._blocked, self._segments = blocked, segments
        runs: list[_Run] = []
        for index in range(len(blocked.files)):
            number, name, nbytes = blocked.block(index)
            file = segments.file_with(number, name, nbytes)
            if not is_verified:
                file.check(name)  # here: reading a number of an array cannot be noticed later
            begin = index * BLOCK_NBYTES
            last, shift = runs[-1] if runs else None, file.offset(name) - begin
            if not can_map() or not is_page_aligned(begin, nbytes, shift):
                continue
            if last is not None and last.file is file and (last.end, last.shift) == (begin, shift):
                last.end += nbytes
            else:
                runs.append(_Run(begin, begin + nbytes, file, shift))
        self._runs = runs if len(runs) <= _MAX_RUNS else []

    def array(self) -> NDArray[Any]:
        nbytes = self._blocked.nbytes
        content = allocate_mappable(nbytes) if self._runs else np.empty(nbytes, np.uint8)
        self.lay(content)
        return content.view(self._blocked.dtype).reshape(self._blocked.shape)

    def lay(self, target: NDArray[np.uint8]) -> None:
        """Fill memory of the same size with the content of the array, by mapping where possible."""
        done = 0
        for _, runs in groupby(self._runs if is_mappable(target) else (), lambda run: id(run.file)):
            first = next(runs)
            with first.file.opened() as descriptor:
                if descriptor is None:
                    continue  # replaced or removed: copied from the existing mapping below
                for run in chain((first,), runs):
                    self._copy(target, done, run.begin)
                    map_over(target[run.begin : run.end], descriptor, run.begin + run.shift)
                    done = run.end
        self._copy(target, done, self._blocked.nbytes)

    def _copy(self, target: NDArray[np.uint8], begin: int, end: int) -> None:
        for place in range(begin, end, BLOCK_NBYTES):
            content = self._segments.item(*self._blocked.block(place // BLOCK_NBYTES))
            target[place : place + len(content)] = content
