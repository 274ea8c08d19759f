"""``Journal``: the file beside a ring that says what was committed, and in which order."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from io import FileIO
from itertools import chain
from pathlib import Path

from sb3_extra_buffers.checkpoints.atomic import replacing, write_all
from sb3_extra_buffers.errors import FileDamagedError, FileVersionError, ForeignFileError
from sb3_extra_buffers.heaps.journal_format import (
    BASE_NBYTES,
    HEAP_FORMAT_VERSION,
    JOURNAL_MAGIC,
    Base,
    Record,
    base_header,
    pack,
    parse_base,
    prefix,
)

#: A journal is written anew when it is this many times as long as it was after the last time.
_GROWTH = 2
_MIN_NBYTES = 1 << 20
_PIECE_NBYTES = 1 << 20


class Journal:
    """Records, appended one by one; and written anew, without those that no longer matter, before they become many.

    :param path: of the journal
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: FileIO | None = None
        self._end = self._next = 0
        self._limit = _MIN_NBYTES

    @property
    def is_long(self) -> bool:
        """Whether it is time to write it anew."""
        return self._end > self._limit

    @property
    def next_number(self) -> int:
        """Of the record that comes next."""
        return self._next

    @property
    def nbytes(self) -> int:
        """Its size."""
        return self._end

    def rewrite(self, base: Base, records: Iterable[Record]) -> None:
        """Begin anew. Whatever happens, there is the old journal or the new one.

        :param base: what it begins with; numbers go on from there
        :param records: what is still true
        """
        numbered = enumerate(records, base.first)
        number, end, piece = base.first - 1, 0, bytearray()
        with replacing(self.path) as file:
            for content in chain([base_header(base)], (pack(number, record) for number, record in numbered)):
                piece += content
                number += 1
                if len(piece) >= _PIECE_NBYTES:
                    write_all(file, bytes(piece))
                    end += len(piece)
                    piece.clear()
            write_all(file, bytes(piece))
            end += len(piece)
        self.close()
        self._file = FileIO(str(self.path), "r+")
        self._next, self._end = number, end
        self._limit = max(_GROWTH * end, _MIN_NBYTES)

    def postpone(self) -> None:
        """Let it grow: there was no room to write it anew."""
        self._limit *= _GROWTH

    def append(self, record: Record) -> None:
        """Write a record. If that fails, nothing was written.

        :param record: what to say
        """
        assert self._file is not None
        content = pack(self._next, record)
        try:
            self._file.seek(self._end)
            write_all(self._file, content)
        except OSError:
            with suppress(OSError):  # the next record goes to the same place anyway
                self._file.truncate(self._end)
            raise
        self._end += len(content)
        self._next += 1

    def sync(self) -> None:
        """Wait until all is on the disk."""
        assert self._file is not None
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()


def read_base(path: Path, content: bytes) -> Base:
    """What a journal begins with.

    :param path: of the journal, for errors
    :param content: all of it
    """
    check_header(path, content, JOURNAL_MAGIC, BASE_NBYTES)
    return parse_base(content[:BASE_NBYTES])


def check_header(path: Path, content: bytes, magic: bytes, nbytes: int) -> None:
    """Refuse what is not one of our files, is newer than we are, or is damaged at its beginning."""
    if content[: len(magic)] != magic:
        raise ForeignFileError(str(path), f"it begins with {content[:16]!r}", "It is no file of the heap 'mmap'.")
    if len(content) < nbytes:
        raise FileDamagedError(str(path), (f"it has {len(content)} bytes, its header alone has {nbytes}",))
    _, version, is_right = prefix(content[:nbytes])
    if version > HEAP_FORMAT_VERSION:
        raise FileVersionError(str(path), version, HEAP_FORMAT_VERSION)
    if not is_right:
        raise FileDamagedError(str(path), (f"the header, bytes 0 to {nbytes - 1}, or its checksum",))
