"""Atomic replacement of files: a file has its old content or its new content, never a part of either."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import BinaryIO, cast

#: Suffix of unfinished files.
UNFINISHED = ".unfinished"


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write a new file and, once it is on disk, rename it to the given path.

    After a crash or a loss of power, the path has the old content or the new one. If the block raises, the old file
    stays and the new one is removed. A killed process may leave a file that ends in ``.unfinished``.

    :param path: the file to replace or create; its folder must exist
    """
    target = Path(path)
    unfinished = target.with_name(f".{target.name}.{secrets.token_hex(8)}{UNFINISHED}")
    # Not tempfile: its files are readable by their owner only.
    number = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with FileIO(number, "w") as file:
            yield cast("BinaryIO", file)
            os.fsync(file.fileno())
        unfinished.replace(target)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to disk."""
    if os.name == "nt":
        return  # Windows cannot open folders
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
