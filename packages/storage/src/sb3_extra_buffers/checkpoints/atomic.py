"""Atomic replacement of files: a file has its old content or its new content, never a part of either."""

from __future__ import annotations

import errno
import glob
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import BinaryIO, cast

from sb3_extra_buffers.errors import FileWriteError

try:
    import fcntl
except ImportError:  # Windows has no such locks; it refuses to remove files that are open
    fcntl = None  # type: ignore[assignment]

#: Suffix of unfinished files.
UNFINISHED = ".unfinished"
_TOKEN_NBYTES = 8
#: What to do about some errors of the system.
HINTS: dict[int | None, str] = dict.fromkeys(
    (errno.EMFILE, errno.ENFILE), "Close files, or raise the limit that `ulimit -n` shows."
)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write a new file and, once it is on disk, rename it to the given path.

    After a crash or a loss of power, the path has the old content or the new one. If the block raises, the old file
    stays and the new one is removed. A killed process may leave a file that ends in ``.unfinished``, which the next
    replacement of the same file removes.

    :param path: the file to replace or create; its folder must exist
    """
    target = Path(path)
    _remove_stale(target)
    unfinished, number = _create(target)
    try:
        with FileIO(number, "w") as file:
            yield cast("BinaryIO", file)
            os.fsync(file.fileno())
            if fcntl is None:
                file.close()  # Windows renames no open file
            unfinished.replace(target)  # still locked, so that it is not taken for a stale one
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise
    sync_folder(target.parent)


def _create(target: Path) -> tuple[Path, int]:
    """Create an unfinished file, locked as long as it is open."""
    while True:
        path = target.with_name(f".{target.name}.{secrets.token_hex(_TOKEN_NBYTES)}{UNFINISHED}")
        # Not tempfile: its files are readable by their owner only.
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        with suppress(OSError):  # file systems without locks
            try_lock(number)
        if path.exists():  # no other process has found it before it was locked
            return path, number
        os.close(number)


def _remove_stale(target: Path) -> None:
    """Remove unfinished files for a target whose writers were killed. Those of living writers are locked."""
    pattern = f".{glob.escape(target.name)}.{'[0-9a-f]' * 2 * _TOKEN_NBYTES}{UNFINISHED}"
    for path in target.parent.glob(pattern):
        with suppress(OSError):
            if fcntl is None:
                path.unlink()
                continue
            with FileIO(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "w") as file:
                if try_lock(file.fileno()):
                    path.unlink()


def try_lock(number: int) -> bool:
    """Lock an open file or folder until it is closed. Returns whether no other process has locked it."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def write_error(path: str | os.PathLike[str], asked: str, error: OSError, hint: str = "") -> FileWriteError:
    """An error of the system as one of this library."""
    return FileWriteError(os.fspath(path), asked, error.strerror or str(error), HINTS.get(error.errno, hint))


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to disk."""
    if os.name == "nt":
        return  # Windows cannot open folders
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
