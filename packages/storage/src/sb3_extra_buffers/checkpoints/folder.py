"""The folder of a checkpoint: who may write to it, what is there, and what of it nobody needs."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sb3_extra_buffers.checkpoints.manifest import NAME, Manifest, read_manifest
from sb3_extra_buffers.checkpoints.replacing import UNFINISHED, sync_folder
from sb3_extra_buffers.checkpoints.segments import number_of
from sb3_extra_buffers.errors import (
    FileContentError,
    FileDamagedError,
    FileError,
    FileMissingError,
    FileWriteError,
    ForeignFileError,
)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """A folder to save to, which is made if need be and which nobody else is writing to.

    What the system refuses meanwhile becomes an error that says where, and what to do.
    """
    try:
        with _locked(folder):
            yield
    except FileError:
        raise
    except OSError as error:
        hint = "Make room, or choose a place that you may write to. What was saved before is there."
        raise FileWriteError(str(folder), "save", error.strerror or str(error), hint) from error


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    if not folder.exists():
        try:
            folder.mkdir()
        except OSError as error:
            hint = "It is made in a folder that exists and that you may write to."
            raise FileWriteError(str(folder), "save", error.strerror or str(error), hint) from error
        sync_folder(folder.parent)
    elif not folder.is_dir():
        hint = "Choose another path."
        raise FileContentError(str(folder), "a folder to save to", "a file", hint)
    try:
        import fcntl
    except ImportError:  # on Windows two processes that save to one folder are not kept apart
        yield
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(number)
        hint = "Wait for it, or choose another path."
        raise FileContentError(str(folder), "a folder to save to", "what another process is saving now", hint) from None
    try:
        yield
    finally:
        os.close(number)  # and is unlocked, as it is if the process is killed


def checkpoint_in(folder: Path) -> Manifest | None:
    """Which checkpoint is there. One that is damaged is as good as none, and replaced; a newer one is refused."""
    if not (folder / NAME).exists():
        others = [found.name for found in folder.iterdir() if number_of(found) is None]
        if any(not name.endswith(UNFINISHED) for name in others):
            hint = "Choose a path that does not exist, or an empty folder."
            raise FileContentError(str(folder), "a folder to save to", f"other files ({others[0]})", hint)
        return None
    try:
        return read_manifest(folder)
    except (FileDamagedError, ForeignFileError, FileContentError):
        return None


def needed_of(folder: Path, there: Manifest | None) -> set[int]:
    """The numbers of all segments that may be needed. What a damaged manifest refers to nobody knows, so it is all."""
    if there is not None:
        return set(there.segments)
    is_damaged = (folder / NAME).exists()
    return {number for path in folder.iterdir() if is_damaged and (number := number_of(path)) is not None}


def remove_rest(folder: Path, needed: Collection[int]) -> None:
    """Remove what nobody needs: old segments, and what is left of a save that failed or was killed.

    What cannot be removed is left for the next save: on Windows, a file that a loaded buffer has mapped is in use.

    :param folder: of a checkpoint
    :param needed: the numbers of the segments that stay
    """
    for path in folder.iterdir():
        number = number_of(path)
        if (number is not None and number not in needed) or path.name.endswith(UNFINISHED):
            with suppress(OSError):
                path.unlink()


def nbytes_of(folder: Path) -> int:
    """Size of all files; of what is removed meanwhile, by a process that saves, nothing."""
    found = 0
    try:
        for path in folder.iterdir():
            with suppress(FileNotFoundError):
                found += path.stat().st_size if path.is_file() else 0
    except FileNotFoundError:
        raise FileMissingError(str(folder)) from None
    return found
