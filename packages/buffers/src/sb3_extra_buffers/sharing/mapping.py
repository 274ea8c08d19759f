"""A file that several processes have in their memory."""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np

from sb3_extra_buffers.errors import FileVersionError, FileWriteError, ForeignFileError
from sb3_extra_buffers.memory import Bytes

VERSION = 1
#: Numbers that different processes write lie this far apart, so that they do not share a line of a cache.
LINE_NBYTES = 64
#: Magic, version.
_BEGINNING_NBYTES = 12


def make(
    path: str | os.PathLike[str], magic: bytes, nbytes: int, parts: Mapping[int, bytes] = MappingProxyType({})
) -> Bytes:
    """Make a file of zeros and map it. It gets its magic last: until then, nobody takes it for one.

    :param path: where; there must be nothing
    :param magic: eight bytes by which it is known
    :param nbytes: its size
    :param parts: what it holds from the start, by place
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        hint = "Choose a name that is not taken, in a folder in which files can be made."
        raise FileWriteError(str(path), "a shared file", error.strerror or str(error), hint) from error
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, nbytes)  # a full disk is an error here, not a signal later
        else:
            os.ftruncate(descriptor, nbytes)
        content = np.frombuffer(mmap.mmap(descriptor, nbytes), np.uint8)
    except OSError as error:
        Path(path).unlink()
        hint = f"It needs {nbytes} bytes: use fewer slots, or another folder."
        raise FileWriteError(str(path), "a shared file", error.strerror or str(error), hint) from error
    finally:
        os.close(descriptor)
    for place, part in parts.items():
        content[place : place + len(part)] = np.frombuffer(part, np.uint8)
    content[8:_BEGINNING_NBYTES].view("<u4")[0] = VERSION
    content[:8] = np.frombuffer(magic, np.uint8)
    return content


def attach(path: str | os.PathLike[str], magic: bytes, what: str) -> Bytes:
    """Map a file that another process has made.

    :param path: where it is
    :param magic: eight bytes by which it is known
    :param what: what it must be, for the error
    """
    with Path(path).open("r+b") as file:
        beginning = file.read(_BEGINNING_NBYTES)
        if beginning[:8] != magic or len(beginning) < _BEGINNING_NBYTES:
            hint = "" if any(beginning[:8]) else "If it is being made at this moment, try again."
            raise ForeignFileError(str(path), f"it begins with {beginning[:8]!r}, {what} with {magic!r}", hint)
        version = int.from_bytes(beginning[8:], "little")
        if version != VERSION:
            raise FileVersionError(str(path), version, VERSION)
        return np.frombuffer(mmap.mmap(file.fileno(), 0), np.uint8)
