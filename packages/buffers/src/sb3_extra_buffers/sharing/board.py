"""``Board``: the latest of something, from one process to all who look."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from sb3_extra_buffers.errors import FileDamagedError, ParameterError
from sb3_extra_buffers.memory import Bytes
from sb3_extra_buffers.sharing.mapping import LINE_NBYTES, attach, make

_MAGIC = b"SB3XBORD"
_VERSION, _PAGES = LINE_NBYTES, 2 * LINE_NBYTES
#: On a page: the version that it holds, how long it is, its checksum; then the content.
_PAGE = np.dtype([("version", "<u8"), ("nbytes", "<u8"), ("checksum", "<u4")])
_HEAD = LINE_NBYTES
#: A writer that is much faster than a reader tears every look; after so many, something is wrong.
_LOOKS = 1000


class Board:
    """
    Bytes that one process replaces and any number of others read, for instance the weights of a network.

    There are two pages. The writer fills the one that nobody is told to read and then says its number, so a reader
    always finds a whole one; if it was overtaken while it read, it looks again.

    Make it with :meth:`create`, and open it elsewhere with :meth:`attach`.
    """

    def __init__(self, path: str | os.PathLike[str], content: Bytes) -> None:
        self.path = Path(path)
        #: How many bytes fit.
        self.capacity = (len(content) - _PAGES) // 2 - _HEAD
        if self.capacity < 1 or self.capacity % LINE_NBYTES or len(content) % 2:
            raise FileDamagedError(str(path), (f"it has {len(content)} bytes, which is no size of a board",))
        self._version = content[_VERSION : _VERSION + 8].view("<u8")
        pages = content[_PAGES:].reshape(2, _HEAD + self.capacity)
        self._heads = [page[: _PAGE.itemsize].view(_PAGE) for page in pages]
        self._contents = pages[:, _HEAD:]

    @classmethod
    def create(cls, path: str | os.PathLike[str], capacity: int) -> Board:
        """
        Make a board with nothing on it.

        :param path: where; there must be nothing
        :param capacity: how many bytes fit
        """
        if isinstance(capacity, bool) or not isinstance(capacity, (int, np.integer)) or capacity < 1:
            raise ParameterError("Board", "capacity", capacity, "it must be a number of bytes, at least 1")
        capacity = -(-int(capacity) // LINE_NBYTES) * LINE_NBYTES
        return cls(path, make(path, _MAGIC, _PAGES + 2 * (_HEAD + capacity)))

    @classmethod
    def attach(cls, path: str | os.PathLike[str]) -> Board:
        """
        Open a board that another process has made.

        :param path: where it is
        """
        return cls(path, attach(path, _MAGIC, "a board"))

    @property
    def version(self) -> int:
        """How often something was written; 0 if never."""
        return int(self._version[0])

    def write(self, content: bytes | memoryview) -> int:
        """
        Replace what is there, for the one process that does so.

        :param content: at most ``capacity`` bytes
        :return: its version
        """
        data = np.frombuffer(content, np.uint8)
        if len(data) > self.capacity:
            raise ParameterError("Board", "content", f"{len(data)} bytes", f"{self.capacity} bytes fit")
        version = self.version + 1
        head = self._heads[version % 2]
        head["version"] = 0  # until it is complete, it is none
        self._contents[version % 2, : len(data)] = data
        head["nbytes"], head["checksum"] = len(data), crc32(data, version & 0xFFFFFFFF)
        head["version"] = version
        self._version[0] = version
        return version

    def read(self, newer_than: int = 0) -> tuple[int, bytes] | None:
        """
        The latest, and its version; ``None`` if there is nothing newer.

        :param newer_than: the version that the caller has
        """
        for _ in range(_LOOKS):
            version = self.version
            if version <= newer_than:
                return None
            head = self._heads[version % 2]
            nbytes, checksum = int(head["nbytes"][0]), int(head["checksum"][0])
            found = self._contents[version % 2, : min(nbytes, self.capacity)].tobytes()
            is_same = int(head["version"][0]) == version and nbytes <= self.capacity
            if is_same and crc32(found, version & 0xFFFFFFFF) == checksum:
                return version, found
            time.sleep(0.0001)
        raise FileDamagedError(str(self.path), (f"version {self.version}",), "Write to it again.")

    def __reduce__(self) -> tuple[Any, ...]:
        return Board.attach, (str(self.path),)  # a process that gets it maps the same file
