"""A limit that the system really keeps: a control group, below that of this process, with little memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")


class NotPermittedError(Exception):
    """Why there is no such group, in words."""


@dataclass(frozen=True)
class MemoryLimit:
    """A control group. What processes in it hold counts, and what the system caches for them.

    :param folder: of the group
    :param is_second: whether it is of the second version of control groups
    """

    folder: Path
    is_second: bool

    def enter(self) -> None:
        """Move this process into the group."""
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    @property
    def most_nbytes(self) -> int:
        """The most that was ever held."""
        name = "memory.peak" if self.is_second else "memory.max_usage_in_bytes"
        return int((self.folder / name).read_text())


@contextmanager
def memory_limit(nbytes: int) -> Iterator[MemoryLimit]:
    """A group that may hold so many bytes, without swapping. It is removed in the end."""
    folder, is_second = _own_group()
    limit = MemoryLimit(folder / f"sb3-extra-buffers-{os.getpid()}", is_second)
    try:
        limit.folder.mkdir()
    except OSError as error:
        raise NotPermittedError(f"no control group can be made in {folder} ({error.strerror})") from None
    try:
        name = "memory.max" if is_second else "memory.limit_in_bytes"
        try:
            (limit.folder / name).write_text(str(nbytes))
        except OSError as error:
            raise NotPermittedError(f"{limit.folder / name} cannot be set ({error.strerror})") from None
        yield limit
    finally:
        limit.folder.rmdir()


def _own_group() -> tuple[Path, bool]:
    """Where the group of this process is, and whether it is of the second version."""
    path = Path("/proc/self/cgroup")
    lines = [line.split(":", 2) for line in path.read_text().splitlines()] if path.exists() else []
    for _, controllers, group in lines:
        if "memory" in controllers.split(","):
            return _ROOT / "memory" / group.lstrip("/"), False
    for _, controllers, group in lines:
        if not controllers and (_ROOT / "cgroup.controllers").exists():
            return _ROOT / group.lstrip("/"), True
    raise NotPermittedError("this system has no control groups with memory")
