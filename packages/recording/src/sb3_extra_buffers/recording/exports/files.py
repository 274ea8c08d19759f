"""Files and folders that are there when they are complete, and else not at all."""

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
    """A file that takes its place when it is complete. After a failure, what was there before is there.

    :param path: the file to write; one that is there is replaced
    :param feature: what writes it, for the error
    """
    target = Path(path)
    with _explained(target, feature):
        if target.is_dir():
            raise FileWriteError(str(target), feature, "it is a folder", "Name a file in it.")
    with _explained(target, feature), checkpoints.replacing(target) as file:
        # Libraries write little pieces, and do not look how much of one was taken.
        buffered = io.BufferedWriter(cast("io.RawIOBase", file), 1 << 20)
        try:
            yield cast("BinaryIO", buffered)
            buffered.flush()
        finally:
            _let_go(buffered)


@contextmanager
def new_folder(path: AnyPath, feature: str, within: Path | None = None) -> Iterator[Path]:
    """A temporary folder, which becomes the one that was asked for when it is complete. A failure leaves nothing.

    :param path: the folder to make; one that is there is never touched
    :param feature: what makes it, for the error
    :param within: where the temporary folder is, on the same disk; ``None`` for beside the one to make
    """
    # Libraries that are told a relative path that begins with a dot do not all understand it.
    target = Path(path).absolute()
    with _explained(target, feature):
        if target.exists():
            raise FileWriteError(str(target), feature, "it is there already", "Name another one, or remove it first.")
    home = target.parent if within is None else within.absolute()
    draft = home / f".{target.name}.{secrets.token_hex(8)}.unfinished"
    with _explained(target, feature, home):
        try:
            draft.mkdir()
            yield draft
            if within is not None:
                target.parent.mkdir(parents=True, exist_ok=True)
            draft.rename(target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def _explained(target: Path, feature: str, home: Path | None = None) -> Iterator[None]:
    """What the system says about the file, as an error that says what was asked."""
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


def _let_go(buffered: io.BufferedWriter[Any]) -> None:
    """Leave the file to its owner, who closes it; whatever could not be written is dropped with its draft."""
    try:
        buffered.detach()
    except OSError:
        buffered.raw.close()
