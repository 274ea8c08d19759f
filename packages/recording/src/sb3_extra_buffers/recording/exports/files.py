"""Files and folders that appear only when they are complete."""

from __future__ import annotations

import io
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from sb3_extra_buffers import checkpoints
from sb3_extra_buffers.errors import FileWriteError

AnyPath = str | os.PathLike[str]


@contextmanager
def new_file(path: AnyPath, feature: str) -> Iterator[BinaryIO]:
    """Open a file that replaces an existing one when it is complete. On failure, the existing file stays.

    :param path: the file
    :param feature: name of the export, for errors
    """
    target = Path(path)
    with _system_errors(target, feature):
        if target.is_dir():
            raise FileWriteError(str(target), feature, "it is a folder", "Name a file in it.")
    with _system_errors(target, feature), checkpoints.replacing(target) as file:
        # Libraries write small pieces and do not handle short writes.
        buffered = io.BufferedWriter(cast("io.RawIOBase", file), 1 << 20)
        try:
            yield cast("BinaryIO", buffered)
            buffered.flush()
        finally:
            _detach(buffered)


@contextmanager
def new_folder(path: AnyPath, feature: str, within: Path | None = None) -> Iterator[Path]:
    """Create a temporary folder that is renamed when it is complete. A failure leaves nothing behind.

    :param path: the folder; it must not exist
    :param feature: name of the export, for errors
    :param within: parent of the temporary folder, on the same disk; ``None`` for the parent of ``path``
    """
    # Not all libraries accept a relative path that begins with a dot.
    target = Path(path).absolute()
    with _system_errors(target, feature):
        if target.exists():
            raise FileWriteError(str(target), feature, "it already exists", "Name another folder, or remove it first.")
    home = target.parent if within is None else within.absolute()
    draft = home / f".{target.name}.{secrets.token_hex(8)}.unfinished"
    with _system_errors(target, feature, home):
        try:
            draft.mkdir()
            yield draft
            if within is not None:
                target.parent.mkdir(parents=True, exist_ok=True)
            draft.rename(target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def _system_errors(target: Path, feature: str, home: Path | None = None) -> Iterator[None]:
    """Raise errors of the operating system as ``FileWriteError``."""
    folder = home or target.parent
    try:
        yield
    except OSError as error:
        if isinstance(error, FileWriteError):
            raise
        if isinstance(error, FileNotFoundError) and not folder.is_dir():
            problem = f"there is no folder {str(folder)!r}"
            raise FileWriteError(str(target), feature, problem, "Make it first.") from error
        raise FileWriteError(str(target), feature, error.strerror or str(error)) from error


def _detach(buffered: io.BufferedWriter[Any]) -> None:
    """Leave closing to the owner of the file. Bytes that cannot be written are dropped with the draft."""
    try:
        buffered.detach()
    except OSError:
        buffered.raw.close()
