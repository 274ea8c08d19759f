"""``replacing``: a file that is there as a whole, or is what it was before."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import BinaryIO, cast

#: How the names of unfinished files end.
UNFINISHED = ".unfinished"


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write a file beside the one it will replace, and put it in place when everything is on the disk.

    Whatever happens, also a loss of power, there is the old file or the new one. If the block is left with an error,
    the old one stays and what was written is removed; of a process that was killed, a file that ends in
    ``.unfinished`` may stay.

    :param path: which file; its folder must exist
    """
    target = Path(path)
    unfinished = target.with_name(f".{target.name}.{secrets.token_hex(8)}{UNFINISHED}")
    # Not by tempfile, whose files nobody else may read.
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
    """Make sure that the names in a folder are on the disk."""
    if os.name == "nt":
        return  # folders cannot be opened there
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
