"""Files of named arrays: write them atomically, map them, verify their checksums."""

from __future__ import annotations

import errno
import json
import mmap
import os
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from io import FileIO
from itertools import accumulate, count
from pathlib import Path
from typing import Any, BinaryIO
from weakref import WeakKeyDictionary
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sb3_extra_buffers.checkpoints.atomic import replacing
from sb3_extra_buffers.checkpoints.format import (
    ALIGNMENT,
    BEGINNING_NBYTES,
    CHECKSUM_BLOCK_NBYTES,
    FORMAT_VERSION,
    LENGTH_NBYTES,
    MAX_HEADER_NBYTES,
    OF_BLOCKS,
    OF_CHECKSUMS,
    OF_HEADER,
    Entry,
    HeaderError,
    Layout,
    arrange,
    as_bytes,
    checksum_count,
    compose,
    parse,
    split,
    storable,
    version_of,
)
from sb3_extra_buffers.checkpoints.memory_map import ReadAdvice, map_file
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
from sb3_extra_buffers.memory import address_of, mapping_of, write_all

_OWNER = "checkpoints.write"
_HINTS: dict[int | None, str] = {
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), "Close files, or raise the limit that `ulimit -n` shows."),
    **dict.fromkeys((errno.EACCES, errno.EPERM), "Ask its owner for the permission to read it."),
}
_COPY_HINT = "Nothing of it is saved again: the copy would get a valid checksum. Use another copy of the file."


def write(
    path: str | os.PathLike[str],
    arrays: Mapping[str, ArrayLike],
    metadata: Mapping[str, Any],
    kind: str,
    alignment: int = ALIGNMENT,
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
    ready = {name: storable(name, value) for name, value in arrays.items()}
    layout = arrange(kind, _json(metadata), ((name, array.dtype, array.shape) for name, array in ready.items()))
    header = compose(layout, alignment)
    if len(header) > MAX_HEADER_NBYTES:
        allowed = f"the header would have {len(header):,} bytes, at most {MAX_HEADER_NBYTES:,} are allowed"
        raise ParameterError(_OWNER, "arrays and metadata", "too much", allowed, "Put large things into arrays.")
    sums = np.zeros(layout.checksums.shape, layout.checksums.dtype)
    sums[OF_HEADER] = crc32(header)
    numbers = count(OF_BLOCKS)
    with replacing(path) as file:
        write_all(file, header)
        file.seek(layout.checksums.nbytes, os.SEEK_CUR)
        for entry in layout.entries:
            advice, done = ReadAdvice(ready[entry.name]), 0
            for block in split(ready[entry.name], CHECKSUM_BLOCK_NBYTES):
                advice.will_read(done, len(block))
                sums[next(numbers)] = crc32(block)
                write_all(file, block)
                advice.done_reading(done, len(block))
                done += len(block)
        sums[OF_CHECKSUMS] = crc32(as_bytes(sums[OF_BLOCKS:]))
        file.seek(len(header))
        write_all(file, as_bytes(sums))
    return len(header) + layout.nbytes


def _json(metadata: Mapping[str, Any]) -> str:
    try:
        return json.dumps(metadata, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ParameterError(_OWNER, "metadata", dict(metadata), f"it must be valid JSON ({error})") from error


@dataclass(frozen=True)
class _Checksums:
    """The checksums of a file whose data begin at ``begin``. This object does not keep the file mapped."""

    path: Path
    begin: int
    layout: Layout

    def damage(self, content: memoryview, low: int, high: int) -> Iterator[str]:
        """Describe every block with bytes from ``low`` to ``high`` of the file that does not match its checksum."""
        table, (ends, numbers) = self.layout.checksums, self._index
        sums = np.frombuffer(content[self.begin + table.begin : self.begin + table.end], "<u4")
        advice = ReadAdvice(np.frombuffer(content, np.uint8))
        for place in range(bisect_right(ends, low - self.begin), len(ends)):
            entry, number = self.layout.entries[place], numbers[place]
            begin = self.begin + entry.begin
            if begin >= high:
                break
            first = max(0, (low - begin) // CHECKSUM_BLOCK_NBYTES)
            for index in range(first, checksum_count(min(entry.nbytes, high - begin))):
                start = index * CHECKSUM_BLOCK_NBYTES
                end = min(start + CHECKSUM_BLOCK_NBYTES, entry.nbytes)
                advice.will_read(begin + start, end - start)
                if crc32(content[begin + start : begin + end]) != sums[number + index]:
                    yield f"{entry.name!r}, bytes {start} to {end - 1}"
                advice.done_reading(begin + start, end - start)

    @cached_property
    def _index(self) -> tuple[list[int], list[int]]:
        """For each array, its end and the number of its first checksum."""
        ends = [entry.end for entry in self.layout.entries]
        counts = (checksum_count(entry.nbytes) for entry in self.layout.entries)
        return ends, list(accumulate(counts, initial=OF_BLOCKS))


#: The checksums of every mapped file, as long as the mapping is in use.
_checksums: WeakKeyDictionary[mmap.mmap, _Checksums] = WeakKeyDictionary()


def check_source(content: NDArray[Any]) -> None:
    """Refuse to copy bytes from a mapped file that do not match their checksums. Other memory is not checked."""
    pages = mapping_of(content)
    checksums = None if pages is None else _checksums.get(pages)
    if pages is not None and checksums is not None and content.nbytes:
        low = content.ctypes.data - address_of(pages)
        damage = tuple(checksums.damage(memoryview(pages), low, low + content.nbytes))
        if damage:
            raise FileDamagedError(str(checksums.path), damage, _COPY_HINT)


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
            header_nbytes = self._check_beginning(file.read(LENGTH_NBYTES + BEGINNING_NBYTES), size)
            pages = map_file(file.fileno(), size)
        self._content: memoryview | None = memoryview(pages)
        self._begin = LENGTH_NBYTES + header_nbytes
        self._layout = self._checked_layout(self._content)
        self._checksums = _checksums[pages] = _Checksums(self.path, self._begin, self._layout)
        #: The arrays by name.
        self.entries: dict[str, Entry] = {entry.name: entry for entry in self._layout.entries}
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
        return int(sums[OF_HEADER]), int(sums[OF_CHECKSUMS])

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
            file = self.path.open("rb", buffering=0)
        except OSError:
            yield None
            return
        with file:
            yield file.fileno() if _identity(file) == self._identity else None

    def verify(self) -> None:
        """Compare everything with its checksums. The error names every damaged block."""
        damage = tuple(self._checksums.damage(self._whole(), 0, self.nbytes))
        if damage:
            raise FileDamagedError(str(self.path), damage)

    def check(self, name: str) -> None:
        """Refuse to copy an array that is damaged."""
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
        path, header_nbytes = str(self.path), int.from_bytes(beginning[:LENGTH_NBYTES], "little")
        version = version_of(beginning[LENGTH_NBYTES:])
        if version is None:
            hint = "If it was one, its first bytes are damaged: use another copy of it."
            raise ForeignFileError(path, f"it begins with {beginning[: LENGTH_NBYTES + 8]!r}", hint)
        if version > FORMAT_VERSION:
            raise FileVersionError(path, version, FORMAT_VERSION)
        # The first two checksums follow the header directly.
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
        end = self._begin + layout.checksums.end
        if crc32(content[self._begin + 4 * OF_BLOCKS : end]) != sums[OF_CHECKSUMS]:
            raise FileDamagedError(str(self.path), (f"the checksums, bytes {self._begin + 4} to {end - 1}",))
        return layout

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
        hint = _HINTS.get(getattr(error, "errno", None), "")
        raise FileReadError(str(path), getattr(error, "strerror", None) or str(error), hint) from error


def _identity(file: BinaryIO | FileIO) -> tuple[int, ...]:
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
