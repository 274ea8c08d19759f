"""One process at a time: a lock on a file that the system lets go when the process dies, however it dies."""

from __future__ import annotations

import os
import weakref
from pathlib import Path

from sb3_extra_buffers.errors import HeapStateError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]

_held: weakref.WeakSet[FileLock] = weakref.WeakSet()


class FileLock:
    """The right to write a file, until it is released, dropped, or the process is dead.

    It belongs to the process that took it: a forked child does not have it, and does not keep it from others.

    :param label: the heap's name, for errors
    :param path: which file; it must exist
    """

    def __init__(self, label: str, path: Path) -> None:
        if fcntl is None:  # pragma: no cover - Windows
            found = "this system has no locks that a dying process gives back"
            raise HeapStateError(label, f"open {path}", found, "Leave out the path.")
        self._file = os.open(path, os.O_RDWR)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._file)
            found = "it is open in another heap, of this process or of another one"
            raise HeapStateError(label, f"open {path}", found, "Close that heap, or take another path.") from error
        self._release = weakref.finalize(self, os.close, self._file)
        _watch_forks()
        _held.add(self)

    def release(self) -> None:
        """Let others have it."""
        self._release()


def _close_in_child() -> None:
    # A lock is held as long as one process has the file open by which it was taken; so the child closes it.
    for lock in list(_held):
        lock.release()


_is_watching = False


def _watch_forks() -> None:
    global _is_watching
    if not _is_watching:
        os.register_at_fork(after_in_child=_close_in_child)
        _is_watching = True
