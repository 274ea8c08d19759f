"""Create and open memory-mapped files that several processes share."""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np

from sb3_extra_buffers.errors import FileVersionError, FileWriteError, ForeignFileError
from sb3_extra_buffers.memory import Bytes

VERSION = 1
#: Numbers that different processes write are this far apart, so that they never share a cache line.
LINE_NBYTES = 64
#: Magic and version.
_HEAD_NBYTES = 12


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
    content[8:_HEAD_NBYTES].view("<u4")[0] = VERSION
    content[:8] = np.frombuffer(magic, np.uint8)
    return content


def attach_file(path: str | os.PathLike[str], magic: bytes, kind: str) -> Bytes:
    """Map a file that another process has created; the error says what ``kind`` of file it should be."""
    with Path(path).open("r+b", buffering=0) as file:  # reading and writing, which waits for nobody at a pipe
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ForeignFileError(str(path), f"it is a pipe or a device, {kind} is a regular file")
        head = file.read(_HEAD_NBYTES)
        if head[:8] != magic or len(head) < _HEAD_NBYTES:
            hint = "" if any(head[:8]) else "If it is being made at this moment, try again."
            raise ForeignFileError(str(path), f"it begins with {head[:8]!r}, {kind} with {magic!r}", hint)
        version = int.from_bytes(head[8:], "little")
        if version != VERSION:
            raise FileVersionError(str(path), version, VERSION)
        return np.frombuffer(mmap.mmap(file.fileno(), 0), np.uint8)
