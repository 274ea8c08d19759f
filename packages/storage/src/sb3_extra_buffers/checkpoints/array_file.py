"""Files of named arrays: write them atomically, map them, verify their checksums."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import FileIO
from itertools import count
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sb3_extra_buffers.checkpoints import format as layouts
from sb3_extra_buffers.checkpoints.atomic import HINTS, replacing
from sb3_extra_buffers.checkpoints.checksums import Checksums, check_source, checksums
from sb3_extra_buffers.checkpoints.memory_map import map_file, reading_once
from sb3_extra_buffers.errors import (
    FileContentError,
    FileDamagedError,
    FileError,
    FileMissingError,
    FileReadError,
    FileVersionError,
    ForeignFileError,
    ParameterError,
)
from sb3_extra_buffers.memory import write_all

_OWNER = "checkpoints.write"
_HINTS = HINTS | dict.fromkeys((errno.EACCES, errno.EPERM), "Ask its owner for the permission to read it.")


def write(
    path: str | os.PathLike[str],
    arrays: Mapping[str, ArrayLike],
    metadata: Mapping[str, Any],
    kind: str,
    alignment: int = layouts.ALIGNMENT,
) -> int:
    """Write named arrays to one file, atomically.

    :param path: of the file; its folder must exist
    :param arrays: numbers of any shape, by name
    :param metadata: anything that JSON can hold
    :param kind: what the file is, such as ``"recording"``; :func:`open_arrays` can require it
    :param alignment: the first array starts at a multiple of this, which is a multiple of 64
    :return: the size of the file
    """
    for name in arrays:
        if not isinstance(name, str) or not name or name.startswith("__"):
            raise ParameterError(_OWNER, "the name of an array", name, "it must be text and not begin with '__'")
    ready = {name: layouts.storable(name, value) for name, value in arrays.items()}
    layout = layouts.arrange(kind, _json(metadata), ((name, array.dtype, array.shape) for name, array in ready.items()))
    header = layouts.compose(layout, alignment)
    if len(header) > layouts.MAX_HEADER_NBYTES:
        allowed = f"the header would have {len(header):,} bytes, at most {layouts.MAX_HEADER_NBYTES:,} are allowed"
        raise ParameterError(_OWNER, "arrays and metadata", "too much", allowed, "Put large things into arrays.")
    sums = np.zeros(layout.checksums.shape, layout.checksums.dtype)
    sums[layouts.OF_HEADER] = crc32(header)
    numbers = count(layouts.OF_BLOCKS)
    with replacing(path) as file:
        write_all(file, header)
        file.seek(layout.checksums.nbytes, os.SEEK_CUR)
        for entry in layout.entries:
            for block in layouts.split(ready[entry.name], layouts.CHECKSUM_BLOCK_NBYTES):
                with reading_once(block):
                    sums[next(numbers)] = crc32(block)
                    write_all(file, block)
        sums[layouts.OF_CHECKSUMS] = crc32(layouts.as_bytes(sums[layouts.OF_BLOCKS :]))
        file.seek(len(header))
        write_all(file, layouts.as_bytes(sums))
    return len(header) + layout.nbytes


def _json(metadata: Mapping[str, Any]) -> str:
    try:
        return json.dumps(metadata, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ParameterError(_OWNER, "metadata", dict(metadata), f"it must be valid JSON ({error})") from error


class ArrayFile(Mapping[str, NDArray[Any]]):
    """Read-only arrays by name, mapped from a file: the system reads a page when it is accessed.

    The mapping lives as long as one of its arrays, also after :meth:`close`, and keeps its content when the file is
    replaced. It holds no file descriptor: a checkpoint may have more files than a process may open.

    :param path: of the file
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        with _opened(self.path) as file:
            self._identity = _identity(file)
            size = os.fstat(file.fileno()).st_size
            header_nbytes = self._check_beginning(file.read(layouts.LENGTH_NBYTES + layouts.BEGINNING_NBYTES), size)
            pages = map_file(file.fileno(), size)
        self._content: memoryview | None = memoryview(pages)
        self._begin = layouts.LENGTH_NBYTES + header_nbytes
        self._layout = self._checked_layout(self._content)
        self._checksums = checksums[pages] = Checksums(self.path, self._begin, self._layout)
        #: The arrays by name.
        self.entries: dict[str, layouts.Entry] = {entry.name: entry for entry in self._layout.entries}
        #: What the writer passed as metadata.
        self.metadata: Any
        try:
            self.metadata = json.loads(self._layout.metadata)
        except (ValueError, RecursionError) as error:
            raise FileDamagedError(str(self.path), (f"the metadata: {error}",)) from None

    @property
    def kind(self) -> str:
        """What the file is, as its writer named it."""
        return self._layout.kind

    @property
    def nbytes(self) -> int:
        """Size of the file."""
        return self._begin + self._layout.nbytes

    @property
    def sums(self) -> tuple[int, int]:
        """The checksums of the header and of all other checksums. They identify the content of the file."""
        sums = np.frombuffer(self._bytes_of(self._layout.checksums), "<u4")
        return int(sums[layouts.OF_HEADER]), int(sums[layouts.OF_CHECKSUMS])

    def __getitem__(self, name: str) -> NDArray[Any]:
        entry = self.entries[name]
        if entry.nbytes:
            return np.frombuffer(self._bytes_of(entry), entry.dtype).reshape(entry.shape)
        array: NDArray[Any] = np.empty(entry.shape, entry.dtype)
        array.flags.writeable = False
        return array

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def offset(self, name: str) -> int:
        """Offset of an array in the file."""
        return self._begin + self.entries[name].begin

    @contextmanager
    def opened(self) -> Iterator[int | None]:
        """Open the file again and yield its descriptor; ``None`` if it was removed, replaced or changed."""
        try:
            file = _open(self.path)
        except OSError:
            yield None
            return
        with file:
            yield file.fileno() if _identity(file) == self._identity else None

    def verify(self) -> None:
        """Compare everything with its checksums. The error names every damaged block."""
        self._checksums.check(self._whole(), 0, self.nbytes)

    def check(self, name: str) -> None:
        """Compare an array with its checksums."""
        check_source(self[name])

    def close(self) -> None:
        """Release the file. Arrays that are still in use stay valid."""
        self._content = None

    def __enter__(self) -> ArrayFile:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.path}: {self.kind}, {len(self)} arrays, {self.nbytes} bytes>"

    def _check_beginning(self, beginning: bytes, size: int) -> int:
        path, header_nbytes = str(self.path), int.from_bytes(beginning[: layouts.LENGTH_NBYTES], "little")
        version = layouts.version_of(beginning[layouts.LENGTH_NBYTES :])
        if version is None:
            hint = "If it was one, its first bytes are damaged: use another copy of it."
            raise ForeignFileError(path, f"it begins with {beginning[: layouts.LENGTH_NBYTES + 8]!r}", hint)
        if version > layouts.FORMAT_VERSION:
            raise FileVersionError(path, version, layouts.FORMAT_VERSION)
        # The first two checksums follow the header directly.
        if header_nbytes > min(layouts.MAX_HEADER_NBYTES, size - layouts.LENGTH_NBYTES - 4 * layouts.OF_BLOCKS):
            raise FileDamagedError(path, (f"its header has {header_nbytes} bytes, the whole file has {size}",))
        return header_nbytes

    def _checked_layout(self, content: memoryview) -> layouts.Layout:
        sums = np.frombuffer(content[self._begin : self._begin + 4 * layouts.OF_BLOCKS], "<u4")
        if crc32(content[: self._begin]) != sums[layouts.OF_HEADER]:
            raise FileDamagedError(str(self.path), (f"the header, bytes 0 to {self._begin - 1}, or its checksum",))
        try:
            layout = layouts.parse(bytes(content[layouts.LENGTH_NBYTES : self._begin]), len(content) - self._begin)
        except layouts.HeaderError as error:
            raise FileDamagedError(str(self.path), (f"the header: {error}",)) from None
        end = self._begin + layout.checksums.end
        if crc32(content[self._begin + 4 * layouts.OF_BLOCKS : end]) != sums[layouts.OF_CHECKSUMS]:
            raise FileDamagedError(str(self.path), (f"the checksums, bytes {self._begin + 4} to {end - 1}",))
        return layout

    def _bytes_of(self, entry: layouts.Entry) -> memoryview:
        return self._whole()[self._begin + entry.begin : self._begin + entry.end]

    def _whole(self) -> memoryview:
        if self._content is None:
            raise ValueError(f"{self.path} was closed")
        return self._content


def _open(path: Path) -> FileIO:
    # Without waiting: to open a FIFO would wait for its writer.
    return FileIO(path, opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0)))


@contextmanager
def _opened(path: Path) -> Iterator[FileIO]:
    try:
        with _open(path) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ForeignFileError(str(path), "it is a pipe or a device")
            yield file
    except FileError:
        raise
    except FileNotFoundError:
        raise FileMissingError(str(path)) from None
    except IsADirectoryError:
        raise ForeignFileError(str(path), "it is a folder") from None
    except (OSError, MemoryError) as error:
        hint = _HINTS.get(getattr(error, "errno", None), "")
        raise FileReadError(str(path), getattr(error, "strerror", None) or str(error), hint) from error


def _identity(file: FileIO) -> tuple[int, ...]:
    """Distinguishes a file from another one at the same path, and from itself after a change."""
    found = os.fstat(file.fileno())
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def open_arrays(path: str | os.PathLike[str], kind: str | None = None, verify: bool = False) -> ArrayFile:
    """Open a file of arrays. Only its header is read.

    :param path: of the file
    :param kind: the kind that it must have; ``None`` accepts any
    :param verify: compare everything with its checksums
    """
    found = ArrayFile(path)
    if kind is not None and found.kind != kind:
        raise FileContentError(str(path), f"the kind {kind!r}", f"the kind {found.kind!r}")
    if verify:
        found.verify()
    return found
