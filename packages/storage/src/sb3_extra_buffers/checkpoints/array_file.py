"""``ArrayFile``: the arrays of a file, where they lie in it."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.checkpoints.layout import (
    BEGINNING_NBYTES,
    FORMAT_VERSION,
    LENGTH_NBYTES,
    MAX_HEADER_NBYTES,
    OF_BLOCKS,
    OF_CHECKSUMS,
    OF_HEADER,
    Entry,
    HeaderError,
    Layout,
    parse,
    version_of,
)
from sb3_extra_buffers.checkpoints.mapping import mapped
from sb3_extra_buffers.checkpoints.seal import Seal, remember
from sb3_extra_buffers.errors import (
    FileContentError,
    FileDamagedError,
    FileError,
    FileMissingError,
    FileReadError,
    FileVersionError,
    ForeignFileError,
)


class ArrayFile(Mapping[str, NDArray[Any]]):
    """Read-only arrays by name. They are read from the file when they are looked at, page by page.

    The file stays mapped as long as one of its arrays is in use, also after :meth:`close`, and keeps its content when
    another one takes its place. It takes no descriptor: a checkpoint may have more files than a process may open.

    :param path: which file
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        with _opened(self.path) as file:
            self._identity = _identity(file)
            size = os.fstat(file.fileno()).st_size
            header_nbytes = self._check_beginning(file.read(LENGTH_NBYTES + BEGINNING_NBYTES), size)
            self._content: memoryview | None = mapped(file.fileno(), size)
        self._begin = LENGTH_NBYTES + header_nbytes
        self._layout = self._checked_layout(self._content)
        self._seal = Seal(self.path, self._begin, self._layout)
        remember(self._content, self._seal)
        #: Where each array is, by name.
        self.entries: dict[str, Entry] = {entry.name: entry for entry in self._layout.entries}
        #: What the writer said about the arrays.
        self.metadata: Any = self._parsed_metadata()

    @property
    def kind(self) -> str:
        """What the file is, in the writer's word."""
        return self._layout.kind

    @property
    def nbytes(self) -> int:
        """Size of the file."""
        return self._begin + self._layout.nbytes

    @property
    def sums(self) -> tuple[int, int]:
        """The checksums of the header and of all other checksums: two files with the same ones are the same."""
        sums = self._sums()
        return int(sums[OF_HEADER]), int(sums[OF_CHECKSUMS])

    def __getitem__(self, name: str) -> NDArray[Any]:
        entry = self.entries[name]
        if not entry.nbytes:
            return _frozen(np.empty(entry.shape, entry.dtype))
        return np.frombuffer(self._bytes_of(entry), entry.dtype).reshape(entry.shape)

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def offset(self, name: str) -> int:
        """Where in the file an array begins."""
        return self._begin + self.entries[name].begin

    @contextmanager
    def opened(self) -> Iterator[int | None]:
        """The descriptor of the file, for whoever maps parts of it elsewhere; ``None`` if it is not there any more."""
        try:
            file = self.path.open("rb", buffering=0)
        except OSError:
            yield None
            return
        with file:
            yield file.fileno() if _identity(file) == self._identity else None

    def verify(self) -> None:
        """Read everything and compare it with its checksums. The error names every block that is damaged."""
        damage = tuple(self._seal.damage(self._whole(), 0, self.nbytes))
        if damage:
            raise FileDamagedError(str(self.path), damage)

    def check(self, name: str) -> None:
        """Refuse an array that shall be copied and is damaged."""
        self._seal.check(self._whole(), self.offset(name), self.offset(name) + self.entries[name].nbytes)

    def close(self) -> None:
        """Let go of the file. Arrays that are still in use stay valid."""
        self._content = None

    def __enter__(self) -> ArrayFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.path}: {self.kind}, {len(self)} arrays, {self.nbytes} bytes>"

    def _check_beginning(self, beginning: bytes, size: int) -> int:
        path, header_nbytes = str(self.path), int.from_bytes(beginning[:LENGTH_NBYTES], "little")
        version = version_of(beginning[LENGTH_NBYTES:])
        if version is None:
            hint = "If it was one, its first bytes are damaged: use another copy of it."
            raise ForeignFileError(path, f"it begins with {beginning[: LENGTH_NBYTES + 8]!r}", hint)
        if version > FORMAT_VERSION:
            raise FileVersionError(path, version, FORMAT_VERSION)
        # The first two checksums stand right behind the header.
        if header_nbytes > min(MAX_HEADER_NBYTES, size - LENGTH_NBYTES - 4 * OF_BLOCKS):
            raise FileDamagedError(path, (f"its header has {header_nbytes} bytes, the whole file has {size}",))
        return header_nbytes

    def _checked_layout(self, content: memoryview) -> Layout:
        sums = np.frombuffer(content[self._begin : self._begin + 4 * OF_BLOCKS], "<u4")
        if crc32(content[: self._begin]) != sums[OF_HEADER]:
            raise FileDamagedError(str(self.path), (f"the header, bytes 0 to {self._begin - 1}, or its checksum",))
        try:
            layout = parse(bytes(content[LENGTH_NBYTES : self._begin]), len(content) - self._begin)
        except HeaderError as error:
            raise FileDamagedError(str(self.path), (f"the header: {error}",)) from None
        table = content[self._begin + 4 * OF_BLOCKS : self._begin + layout.checksums.end]
        if crc32(table) != sums[OF_CHECKSUMS]:
            end = self._begin + layout.checksums.end
            raise FileDamagedError(str(self.path), (f"the checksums, bytes {self._begin + 4} to {end - 1}",))
        return layout

    def _parsed_metadata(self) -> Any:
        try:
            return json.loads(self._layout.metadata)
        except (ValueError, RecursionError) as error:
            raise FileDamagedError(str(self.path), (f"the metadata: {error}",)) from None

    def _sums(self) -> NDArray[np.uint32]:
        return np.frombuffer(self._bytes_of(self._layout.checksums), "<u4")

    def _bytes_of(self, entry: Entry) -> memoryview:
        return self._whole()[self._begin + entry.begin : self._begin + entry.end]

    def _whole(self) -> memoryview:
        if self._content is None:
            raise ValueError(f"{self.path} was closed")
        return self._content


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        with path.open("rb") as file:
            yield file
    except FileError:
        raise
    except FileNotFoundError:
        raise FileMissingError(str(path)) from None
    except IsADirectoryError:
        raise ForeignFileError(str(path), "it is a folder") from None
    except (OSError, MemoryError) as error:
        raise FileReadError(str(path), getattr(error, "strerror", None) or str(error), _hint(error)) from error


def _hint(error: Exception) -> str:
    number = getattr(error, "errno", None)
    if number in (errno.EMFILE, errno.ENFILE):
        return "Close files, or raise the limit that `ulimit -n` shows."
    return "Ask its owner for the permission to read it." if number in (errno.EACCES, errno.EPERM) else ""


def _identity(file: BinaryIO | FileIO) -> tuple[int, ...]:
    """By which a file is told from another one that came to its place, and from itself after it was written to."""
    found = os.fstat(file.fileno())
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


def open_arrays(path: str | os.PathLike[str], kind: str | None = None, verify: bool = False) -> ArrayFile:
    """
    Open a file of arrays. Whatever its size, only its header is read.

    :param path: which file
    :param kind: what it must be; ``None`` takes any
    :param verify: whether to read and check everything at once
    """
    found = ArrayFile(path)
    if kind is not None and found.kind != kind:
        raise FileContentError(str(path), f"the kind {kind!r}", f"the kind {found.kind!r}")
    if verify:
        found.verify()
    return found
