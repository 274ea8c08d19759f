"""Segments: the files of a checkpoint that hold bytes. Each is written once and never changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.checkpoints.array_file import ArrayFile, open_arrays
from sb3_extra_buffers.checkpoints.layout import ALIGNMENT, PAGE_ALIGNMENT, Entry
from sb3_extra_buffers.checkpoints.writing import write
from sb3_extra_buffers.errors import (
    FileContentError,
    FileDamagedError,
    FileMissingError,
    FileVersionError,
    ForeignFileError,
)

KIND = "segment"
_NAME = "segment-{:06d}.safetensors"
PATTERN = "segment-*.safetensors"
#: A segment of which less than half is needed is written again, so it should not be large.
MAX_NBYTES = 1 << 26


@dataclass(frozen=True)
class Segment:
    """What a manifest knows of a segment.

    :param nbytes: size of its items
    :param sums: by which it is told from another one of the same name
    """

    nbytes: int
    sums: tuple[int, int]


def path_of(folder: Path, number: int) -> Path:
    """Where a segment is."""
    return folder / _NAME.format(number)


def number_of(path: Path) -> int | None:
    """The number of a segment; ``None`` if it is none."""
    digits = path.name.partition("-")[2].partition(".")[0]
    return int(digits) if digits.isdecimal() and path.name == _NAME.format(int(digits)) else None


def write_segments(
    folder: Path, items: dict[str, NDArray[np.uint8]], number: int
) -> Iterator[tuple[int, Segment, list[str]]]:
    """Write bytes by name into as many segments as it takes; yields the number of each, and what is in it.

    :param folder: of the checkpoint
    :param items: bytes in one dimension
    :param number: of the first segment
    """
    waiting: dict[str, NDArray[np.uint8]] = {}
    nbytes = 0
    for place, (name, content) in enumerate(items.items(), 1):
        waiting[name] = content
        nbytes += content.nbytes
        if nbytes >= MAX_NBYTES or place == len(items):
            path = path_of(folder, number)
            write(path, waiting, {}, KIND, _alignment(waiting))
            yield number, Segment(nbytes, open_arrays(path).sums), list(waiting)
            waiting, nbytes, number = {}, 0, number + 1


def _alignment(items: dict[str, NDArray[np.uint8]]) -> int:
    """Pages, if the file begins with what is as large as pages: blocks of arrays, which come first."""
    first = next(iter(items.values()))
    return ALIGNMENT if first.nbytes % PAGE_ALIGNMENT else PAGE_ALIGNMENT


class Segments:
    """The segments of a checkpoint, opened as they are needed.

    :param folder: of the checkpoint
    :param known: what the manifest says of them
    """

    def __init__(self, folder: Path, known: dict[int, Segment]) -> None:
        self._files = {number: self._open(path_of(folder, number), segment) for number, segment in known.items()}

    def item(self, number: int, name: str, nbytes: int) -> NDArray[np.uint8]:
        """Bytes of a segment; read-only, and where they are."""
        return self._holding(number, name, nbytes)[name]

    def place(self, number: int, name: str, nbytes: int) -> tuple[ArrayFile, int]:
        """The file of a segment, and where in it these bytes begin."""
        file = self._holding(number, name, nbytes)
        return file, file.offset(name)

    def check(self, number: int, name: str) -> None:
        """Refuse bytes that were taken over, changed and shall be written again, if they were damaged."""
        file = self._files.get(number)
        if file is not None and name in file.entries:
            file.check(name)

    def verify(self) -> None:
        """Compare everything with its checksums."""
        for file in self._files.values():
            file.verify()

    def _holding(self, number: int, name: str, nbytes: int) -> ArrayFile:
        file = self._files.get(number)
        entry: Entry | None = None if file is None else file.entries.get(name)
        if file is None or entry is None or entry.dtype != np.uint8 or entry.shape != (nbytes,):
            raise KeyError(f"{nbytes} bytes named {name!r} in segment {number}")
        return file

    @staticmethod
    def _open(path: Path, segment: Segment) -> ArrayFile:
        file = open_arrays(path, KIND)
        if file.sums != segment.sums:
            raise FileDamagedError(str(path), ("it is not the file that the manifest knows under this name",))
        return file


def are_there(folder: Path, known: dict[int, Segment]) -> bool:
    """Whether all segments of a manifest are where it says. Only headers are read.

    :param folder: of the checkpoint
    :param known: what the manifest says of them
    """
    try:
        for number, segment in known.items():
            Segments._open(path_of(folder, number), segment).close()
    except (FileMissingError, FileDamagedError, ForeignFileError, FileContentError, FileVersionError):
        return False
    return True
