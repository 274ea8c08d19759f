"""``Board``: shares the latest version of something with any number of processes."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from sb3_extra_buffers.errors import FileDamagedError, ParameterError
from sb3_extra_buffers.memory import Bytes
from sb3_extra_buffers.sharing.mapping import LINE_NBYTES, attach_file, create_file

_MAGIC = b"SB3XBORD"
_VERSION, _PAGES = LINE_NBYTES, 2 * LINE_NBYTES
#: The head of a page: version, size and checksum of the content that follows.
_PAGE = np.dtype([("version", "<u8"), ("nbytes", "<u8"), ("checksum", "<u4")])
_HEAD = LINE_NBYTES
#: Attempts to read a page that the writer keeps overwriting, before it counts as damaged.
_ATTEMPTS = 1000


class Board:
    """Bytes that one process replaces and any number of others read, for instance the weights of a network.

    There are two pages. The writer fills the page that is not current, then makes it the current one. A reader whose
    page was overwritten while it was read reads again. :meth:`create` makes a board; other processes :meth:`attach`.
    """

    def __init__(self, path: str | os.PathLike[str], content: Bytes) -> None:
        self.path = Path(path)
        #: Largest content, in bytes.
        self.capacity = (len(content) - _PAGES) // 2 - _HEAD
        if self.capacity < 1 or self.capacity % LINE_NBYTES or len(content) % 2:
            raise FileDamagedError(str(path), (f"it has {len(content)} bytes, which is no valid size of a board",))
        self._version = content[_VERSION : _VERSION + 8].view("<u8")
        pages = content[_PAGES:].reshape(2, _HEAD + self.capacity)
        self._heads = [page[: _PAGE.itemsize].view(_PAGE) for page in pages]
        self._contents = pages[:, _HEAD:]

    @classmethod
    def create(cls, path: str | os.PathLike[str], capacity: int) -> Board:
        """Create an empty board.

        :param path: of the new file; it must not exist
        :param capacity: size of the largest content, in bytes
        """
        if isinstance(capacity, bool) or not isinstance(capacity, (int, np.integer)) or capacity < 1:
            raise ParameterError("Board", "capacity", capacity, "it must be a number of bytes, at least 1")
        capacity = -(-int(capacity) // LINE_NBYTES) * LINE_NBYTES
        return cls(path, create_file(path, _MAGIC, _PAGES + 2 * (_HEAD + capacity)))

    @classmethod
    def attach(cls, path: str | os.PathLike[str]) -> Board:
        """Open a board that another process has created.

        :param path: of its file
        """
        return cls(path, attach_file(path, _MAGIC, "a board"))

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
        for _ in range(_ATTEMPTS):
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
