"""``Ring`` and ``Board``: memory-mapped files that several processes share."""

from __future__ import annotations

import json
import mmap
import os
import stat
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import (
    FileDamagedError,
    FileVersionError,
    FileWriteError,
    ForeignFileError,
    ParameterError,
)
from sb3_extra_buffers.memory import Bytes

VERSION = 1
#: Numbers that different processes write are this far apart, so that they never share a cache line.
LINE_NBYTES = 64
#: Size of magic and version, with which every file begins.
_BEGIN_NBYTES = 12
#: Seconds between two looks at a file that another process is writing to.
_PAUSE = 0.0005

_RING_MAGIC = b"SB3XRING"
#: Offsets: number of slots and size of the description; records written; records taken; whether the ring has ended.
_SIZES, _WRITTEN, _TAKEN, _ENDED = (LINE_NBYTES * line for line in range(1, 5))
_DESCRIPTION = LINE_NBYTES * 5
#: The number and the checksum before each record.
_HEAD_NBYTES = 16
#: A record that looks incomplete may still be under way from another core; after so many attempts it is damaged.
_RECORD_ATTEMPTS = 50

_BOARD_MAGIC = b"SB3XBORD"
_VERSION, _PAGES = LINE_NBYTES, 2 * LINE_NBYTES
#: The head of a page: version, size and checksum of the content that follows.
_PAGE = np.dtype([("version", "<u8"), ("nbytes", "<u8"), ("checksum", "<u4")])
#: Attempts to read a page that the writer keeps overwriting, before it counts as damaged.
_PAGE_ATTEMPTS = 1000


def create_file(
    path: str | os.PathLike[str], magic: bytes, nbytes: int, parts: Mapping[int, bytes] = MappingProxyType({})
) -> Bytes:
    """Create a file of zeros and map it. The magic is written last: an unfinished file is never taken for a valid one.

    :param magic: the first eight bytes
    :param parts: initial content, by offset
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        hint = "Choose a name that is not taken, in a folder in which files can be made."
        raise FileWriteError(str(path), "a shared file", error.strerror or str(error), hint) from error
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, nbytes)  # a full disk is an error now, not a signal later
        else:
            os.ftruncate(descriptor, nbytes)
        content = np.frombuffer(mmap.mmap(descriptor, nbytes), np.uint8)
    except OSError as error:
        Path(path).unlink()
        hint = f"It needs {nbytes} bytes: use fewer slots, or another folder."
        raise FileWriteError(str(path), "a shared file", error.strerror or str(error), hint) from error
    finally:
        os.close(descriptor)
    for offset, part in parts.items():
        content[offset : offset + len(part)] = np.frombuffer(part, np.uint8)
    content[8:_BEGIN_NBYTES].view("<u4")[0] = VERSION
    content[:8] = np.frombuffer(magic, np.uint8)
    return content


def attach_file(path: str | os.PathLike[str], magic: bytes, kind: str) -> Bytes:
    """Map a file that another process has created; the error says what ``kind`` of file it should be."""
    with Path(path).open("r+b", buffering=0) as file:  # reading and writing: a pipe does not block this
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ForeignFileError(str(path), f"it is a pipe or a device, {kind} is a regular file")
        head = file.read(_BEGIN_NBYTES)
        if head[:8] != magic or len(head) < _BEGIN_NBYTES:
            hint = "" if any(head[:8]) else "If it is being made at this moment, try again."
            raise ForeignFileError(str(path), f"it begins with {head[:8]!r}, {kind} with {magic!r}", hint)
        version = int.from_bytes(head[8:], "little")
        if version != VERSION:
            raise FileVersionError(str(path), version, VERSION)
        return np.frombuffer(mmap.mmap(file.fileno(), 0), np.uint8)


class Ring:
    """A queue of records in a memory-mapped file: one process puts, another takes. A process that dies never blocks the
    other one: a record counts when it is complete, and the next reader takes what was not taken.

    A slot holds a record, its number and a checksum. The writer writes the record, then its number, then the count of
    all records. That is enough on processors that keep the order of writes, such as x86. On others, the checksum
    distinguishes complete records from those that are still under way.

    Create it with :meth:`create`; the other process opens it with :meth:`attach`. The file belongs to the caller: put
    it on an in-memory file system such as ``/dev/shm``, and delete it at the end.
    """

    def __init__(self, path: str | os.PathLike[str], content: Bytes) -> None:
        self.path = Path(path)
        #: Largest number of records that wait.
        self.slots, nbytes = content[_SIZES : _SIZES + 16].view("<u8").tolist()
        try:
            #: The dtype of a record.
            self.record = _parse(bytes(content[_DESCRIPTION : _DESCRIPTION + min(nbytes, len(content))]))
            slot, begin = _slot_dtype(self.record), _whole_lines(_DESCRIPTION + nbytes)
        except Exception as error:  # numpy says by many kinds of errors that something is no dtype
            found = f"the description of its records: {type(error).__name__}: {error}"
            raise FileDamagedError(str(path), (found,)) from None
        if not self.slots >= 1 or len(content) - begin != self.slots * slot.itemsize:
            found = f"it has {len(content)} bytes, {self.slots} slots of {slot.itemsize} were expected after {begin}"
            raise FileDamagedError(str(path), (found,))
        self._slots: NDArray[Any] = content[begin:].view(slot)
        # As bytes: numpy need not copy the padding between the fields of a structure.
        self._bytes = content[begin:].reshape(self.slots, slot.itemsize)
        #: Where the bytes of a record are in its slot.
        self._payload = slice(_HEAD_NBYTES, _HEAD_NBYTES + self.record.itemsize)
        self._written, self._taken, self._ended = (
            content[place : place + 8].view("<u8") for place in (_WRITTEN, _TAKEN, _ENDED)
        )

    @classmethod
    def create(cls, path: str | os.PathLike[str], record: np.dtype[Any], slots: int) -> Ring:
        """Create an empty ring.

        :param path: of the new file; it must not exist
        :param record: the dtype of a record, for instance a :func:`transition_record`
        :param slots: largest number of records that wait
        """
        if isinstance(slots, bool) or not isinstance(slots, (int, np.integer)) or slots < 1:
            raise ParameterError("Ring", "slots", slots, "it must be an integer of at least 1")
        text = _describe(record)
        begin = _whole_lines(_DESCRIPTION + len(text))
        parts = {_SIZES: np.array([slots, len(text)], "<u8").tobytes(), _DESCRIPTION: text}
        return cls(path, create_file(path, _RING_MAGIC, begin + int(slots) * _slot_dtype(record).itemsize, parts))

    @classmethod
    def attach(cls, path: str | os.PathLike[str]) -> Ring:
        """Open a ring that another process has created.

        :param path: of its file
        """
        content = attach_file(path, _RING_MAGIC, "a ring")
        if len(content) < _DESCRIPTION:
            raise FileDamagedError(str(path), (f"it has only {len(content)} bytes",))
        return cls(path, content)

    def __len__(self) -> int:
        """Number of records that wait to be taken."""
        written, taken = int(self._written[0]), int(self._taken[0])
        if not 0 <= written - taken <= self.slots:
            found = f"{written} records were written and {taken} taken, it has {self.slots} slots"
            raise FileDamagedError(str(self.path), (found,), "Create a new one.")
        return written - taken

    @property
    def taken(self) -> int:
        """Number of records taken so far, which is the number of the oldest record that waits."""
        return int(self._taken[0])

    @property
    def written(self) -> int:
        """Number of records put so far; a writer that takes over continues from there."""
        return int(self._written[0])

    @property
    def is_ended(self) -> bool:
        """Whether the writer has ended the ring."""
        return bool(self._ended[0])

    def put(self, record: NDArray[Any], timeout: float | None = None) -> bool:
        """Append a record. Only one process may put.

        :param record: one record, of dtype ``record``
        :param timeout: seconds to wait for a free slot; ``None`` waits without limit
        :return: whether it was appended
        """
        if not self._wait(lambda: len(self) < self.slots, timeout):
            return False
        number = self.written
        slot = self._slots[number % self.slots]
        slot["number"] = 0  # not valid until it is complete
        slot["record"] = record
        slot["checksum"] = crc32(self._bytes[number % self.slots, self._payload], number & 0xFFFFFFFF)
        slot["number"] = number + 1
        self._written[0] = number + 1
        return True

    def end(self) -> None:
        """End the ring: no record will follow."""
        self._ended[0] = 1

    def take(self, limit: int | None = None, timeout: float | None = 0) -> NDArray[Any]:
        """Remove the oldest records and return them. Only one process may take.

        Records before a damaged one are returned first; the next call then raises an error that names it.

        :param limit: largest number of records; ``None`` takes all
        :param timeout: seconds to wait for the first record; ``None`` waits for a record or the end
        :return: a copy, of dtype ``record``
        """
        self._wait(lambda: len(self) > 0 or self.is_ended, timeout)
        found = self.look(limit)
        self.skip(len(found))
        return found

    def look(self, limit: int | None = None) -> NDArray[Any]:
        """Return the oldest records without removing them: up to a damaged one, which is an error if it is the oldest.

        :param limit: largest number of records; ``None`` returns all
        :return: a copy, of dtype ``record``
        """
        first = self.taken
        count = len(self) if limit is None else min(limit, len(self))
        places = (first + np.arange(count)) % self.slots
        for _ in range(_RECORD_ATTEMPTS):
            found = self._bytes[places]
            whole = self._count_whole(found, first)
            if whole == count:
                break
            time.sleep(_PAUSE)
        if count and not whole:
            hint = "skip() leaves it out; or create a new ring."
            raise FileDamagedError(str(self.path), (f"record {first}, in slot {first % self.slots}",), hint)
        records: NDArray[Any] = found[:whole].view(self._slots.dtype).reshape(whole)["record"]
        return records

    def skip(self, count: int = 1) -> None:
        """Remove the oldest records, read or damaged. Only the process that takes may skip.

        :param count: number of records
        """
        if not 0 <= count <= len(self):
            raise ParameterError("Ring", "count", count, f"{len(self)} records wait in {self.path}")
        self._taken[0] += np.uint64(count)

    def _count_whole(self, found: Bytes, first: int) -> int:
        """Number of complete records before the first incomplete one."""
        slots = found.view(self._slots.dtype).reshape(len(found))
        for index, (number, checksum) in enumerate(zip(slots["number"].tolist(), slots["checksum"].tolist())):
            expected = first + index
            if number != expected + 1 or checksum != crc32(found[index, self._payload], expected & 0xFFFFFFFF):
                return index
        return len(found)

    def _wait(self, is_ready: Callable[[], bool], timeout: float | None) -> bool:
        deadline = None if timeout is None else time.monotonic() + timeout
        while not is_ready():
            if deadline is not None and time.monotonic() >= deadline:
                return False
            time.sleep(_PAUSE)
        return True

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.path}: {len(self)} of {self.slots} slots wait>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Ring.attach, (str(self.path),)  # the receiving process maps the same file


def _whole_lines(nbytes: int) -> int:
    return -(-nbytes // LINE_NBYTES) * LINE_NBYTES


def _slot_dtype(record: np.dtype[Any]) -> np.dtype[Any]:
    names, formats = ["number", "checksum", "record"], ["<u8", "<u4", record]
    itemsize = _whole_lines(_HEAD_NBYTES + record.itemsize)
    return np.dtype({"names": names, "formats": formats, "offsets": [0, 8, _HEAD_NBYTES], "itemsize": itemsize})


def _describe(record: np.dtype[Any]) -> bytes:
    """Write a dtype as JSON."""
    if record.fields is None or record.names is None or record.hasobject:
        raise ParameterError("Ring", "record", str(record), "it must be a structured dtype without Python objects")
    fields: Mapping[str, Any] = record.fields
    rows = [[name, fields[name][0].base.str, list(fields[name][0].shape), fields[name][1]] for name in record.names]
    return json.dumps({"fields": rows, "itemsize": record.itemsize}).encode()


def _parse(text: bytes) -> np.dtype[Any]:
    """Read a dtype from JSON; any exception says that it is invalid."""
    found = json.loads(text)
    names, bases, shapes, offsets = map(list, zip(*found["fields"]))
    if any(np.dtype(base).hasobject for base in bases):
        raise ValueError("objects cannot be shared")
    formats = [(base, tuple(shape)) for base, shape in zip(bases, shapes)]
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": found["itemsize"]})


class Board:
    """Bytes that one process replaces and any number of others read, for instance the weights of a network.

    There are two pages. The writer fills the page that is not current, then makes it the current one. A reader whose
    page was overwritten while it was read reads again. :meth:`create` makes a board; other processes :meth:`attach`.
    """

    def __init__(self, path: str | os.PathLike[str], content: Bytes) -> None:
        self.path = Path(path)
        #: Largest content, in bytes.
        self.capacity = (len(content) - _PAGES) // 2 - LINE_NBYTES
        if self.capacity < 1 or self.capacity % LINE_NBYTES or len(content) % 2:
            raise FileDamagedError(str(path), (f"it has {len(content)} bytes, which is no valid size of a board",))
        self._version = content[_VERSION : _VERSION + 8].view("<u8")
        pages = content[_PAGES:].reshape(2, LINE_NBYTES + self.capacity)
        self._heads = [page[: _PAGE.itemsize].view(_PAGE) for page in pages]
        self._contents = pages[:, LINE_NBYTES:]

    @classmethod
    def create(cls, path: str | os.PathLike[str], capacity: int) -> Board:
        """Create an empty board.

        :param path: of the new file; it must not exist
        :param capacity: size of the largest content, in bytes
        """
        if isinstance(capacity, bool) or not isinstance(capacity, (int, np.integer)) or capacity < 1:
            raise ParameterError("Board", "capacity", capacity, "it must be a number of bytes, at least 1")
        capacity = _whole_lines(int(capacity))
        return cls(path, create_file(path, _BOARD_MAGIC, _PAGES + 2 * (LINE_NBYTES + capacity)))

    @classmethod
    def attach(cls, path: str | os.PathLike[str]) -> Board:
        """Open a board that another process has created.

        :param path: of its file
        """
        return cls(path, attach_file(path, _BOARD_MAGIC, "a board"))

    @property
    def version(self) -> int:
        """Number of the current version; 0 if nothing was written yet."""
        return int(self._version[0])

    def write(self, content: bytes | memoryview) -> int:
        """Replace the content. Only one process may write.

        :param content: at most ``capacity`` bytes
        :return: its version
        """
        data = np.frombuffer(content, np.uint8)
        if len(data) > self.capacity:
            raise ParameterError("Board", "content", f"{len(data)} bytes", f"{self.capacity} bytes fit")
        version = self.version + 1
        head = self._heads[version % 2]
        head["version"] = 0  # not valid until it is complete
        self._contents[version % 2, : len(data)] = data
        head["nbytes"], head["checksum"] = len(data), crc32(data, version & 0xFFFFFFFF)
        head["version"] = version
        self._version[0] = version
        return version

    def read(self, newer_than: int = 0) -> tuple[int, bytes] | None:
        """Return the current version and its content, or ``None`` if there is nothing newer.

        :param newer_than: the version that the caller already has
        """
        for _ in range(_PAGE_ATTEMPTS):
            version = self.version
            if version <= newer_than:
                return None
            head = self._heads[version % 2]
            nbytes, checksum = int(head["nbytes"][0]), int(head["checksum"][0])
            found = self._contents[version % 2, : min(nbytes, self.capacity)].tobytes()
            is_same = int(head["version"][0]) == version and len(found) == nbytes
            if is_same and crc32(found, version & 0xFFFFFFFF) == checksum:
                return version, found
            time.sleep(0.0001)
        raise FileDamagedError(str(self.path), (f"version {self.version}",), "Write to it again.")

    def __reduce__(self) -> tuple[Any, ...]:
        return Board.attach, (str(self.path),)  # the receiving process maps the same file
