"""``save_state``: write a state to a checkpoint folder, incrementally and atomically."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.checkpoints.atomic import UNFINISHED, sync_folder, try_lock, write_error
from sb3_extra_buffers.checkpoints.checksums import check_source
from sb3_extra_buffers.checkpoints.format import split, storable
from sb3_extra_buffers.checkpoints.manifest import (
    BLOCK_NBYTES,
    MANIFEST_NAME,
    MAX_INLINE_NBYTES,
    MAX_SEGMENT_NBYTES,
    BlockedArray,
    Item,
    LogPart,
    Manifest,
    Segment,
    Segments,
    digest,
    read_manifest,
    segment_number,
    write_segments,
)
from sb3_extra_buffers.errors import (
    FileContentError,
    FileDamagedError,
    FileError,
    FileMissingError,
    FileVersionError,
    ForeignFileError,
)
from sb3_extra_buffers.heaps.state import Log, State

_COPY_HINT = "Nothing of it is saved again: the copy would get a valid checksum. Use another copy of the file."
#: More small segments than this are merged: each is a mapped file in a process that loads the checkpoint.
_MAX_SMALL, _MERGED_TO = 64, 32
#: Stands for a segment that is not written yet.
_NEW = -1


def save_state(
    path: str | os.PathLike[str], state: State, about: dict[str, Any], known: Manifest | None = None
) -> Manifest:
    """Save a state to a folder. The folder holds the previous state until the new manifest replaces the old one.

    :param path: of the folder; it is created if necessary
    :param state: to save
    :param about: a description of the state, as JSON
    :param known: what the last call for the same object returned, or the manifest it was loaded from. If the folder
        still holds that checkpoint, only what has changed is written.
    :return: the new manifest
    """
    folder = Path(path)
    with _locked(folder):
        current, needed = _current(folder)
        _remove_unneeded(folder, needed)  # frees disk space first
        try:
            manifest = _write(folder, state, about, known, current)
        except BaseException:
            with suppress(OSError, FileError):
                replaced, _ = _current(folder)  # read again: the error may have come after the commit
                _remove_unneeded(folder, needed if replaced is None else replaced.segments)
            raise
        _remove_unneeded(folder, manifest.segments)
    return manifest


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Create the folder if necessary, and lock it. System errors become errors of this library."""
    hint = "Make room, or choose a place that you may write to. What was saved before is there."
    try:
        if not folder.exists():
            try:
                folder.mkdir()
            except OSError:
                hint = f"{str(folder.parent)!r} must be a folder that exists and that you may write to: make it first."
                raise
            sync_folder(folder.parent)
        elif not folder.is_dir():
            raise FileContentError(str(folder), "a folder to save to", "a file", "Choose another path.")
        if os.name == "nt":  # Windows cannot open folders
            yield
            return
        number = os.open(folder, os.O_RDONLY)
        try:
            if not try_lock(number):
                found, hint = "that another process is saving there", "Wait for it, or choose another path."
                raise FileContentError(str(folder), "a folder to save to", found, hint)
            yield
        finally:
            os.close(number)  # also unlocks
    except FileError:
        raise
    except OSError as error:
        raise write_error(folder, "save", error, hint) from error


def _current(folder: Path) -> tuple[Manifest | None, set[int]]:
    """The checkpoint in a folder, and the segments to keep. A newer format version is refused.

    The manifest is ``None`` if there is none or if it is damaged. Of a damaged one, all segments are kept.
    """
    names = {path.name: segment_number(path) for path in folder.iterdir()}
    if MANIFEST_NAME not in names:
        others = [name for name, number in names.items() if number is None]
        if any(not name.endswith(UNFINISHED) for name in others):
            hint = "Choose a path that does not exist, or an empty folder."
            raise FileContentError(str(folder), "a folder to save to", f"other files ({others[0]})", hint)
        return None, set()
    try:
        manifest = read_manifest(folder)
        return manifest, set(manifest.segments)
    except (FileDamagedError, ForeignFileError, FileContentError):
        return None, {number for number in names.values() if number is not None}


def _remove_unneeded(folder: Path, needed: Collection[int]) -> None:
    """Remove unfinished files, and all segments but those with the needed numbers.

    A file that cannot be removed is left for the next save: Windows refuses to remove mapped files.
    """
    for path in folder.iterdir():
        number = segment_number(path)
        if (number is not None and number not in needed) or path.name.endswith(UNFINISHED):
            with suppress(OSError):
                path.unlink()


def _write(
    folder: Path, state: State, about: dict[str, Any], known: Manifest | None, current: Manifest | None
) -> Manifest:
    saved = None
    if known is not None and current is not None and known.serial == current.serial:
        with suppress(FileMissingError, FileDamagedError, ForeignFileError, FileContentError, FileVersionError):
            Segments(folder, known.segments)
            saved = known
    plan = _Plan(state, saved)
    if known is not None and known.source is not None:
        plan.check_arrays(known, known.source)
    manifest = Manifest(about, state.facts, plan.inline, plan.arrays, plan.logs)
    segments = dict(saved.segments) if saved is not None else {}
    # Numbers are never reused, even if a file has vanished: a reader may still look for the old one.
    numbers = [segment_number(found) or 0 for found in folder.iterdir()]
    numbers += [number for one in (known, current) if one is not None for number in one.segments]
    segments |= write_segments(folder, plan.items(), 1 + max(numbers, default=0))
    live = plan.live()
    manifest.segments = {number: part for number, part in segments.items() if number in live}
    manifest.write(folder)
    manifest.inline = {}  # the owner may change these arrays
    return manifest


class _Plan:
    """Decides which blocks and parts of logs stay where they were saved, and which are written."""

    def __init__(self, state: State, saved: Manifest | None) -> None:
        self.inline: dict[str, NDArray[Any]] = {}
        self.arrays: dict[str, BlockedArray] = {}
        self.logs: dict[str, list[LogPart]] = {}
        self._contents: dict[str, NDArray[Any]] = {}
        self._sources: dict[str, list[Log]] = {}
        for name, value in state.arrays.items():
            array = storable(name, value)
            if array.nbytes <= MAX_INLINE_NBYTES:
                self.inline[name] = array
                continue
            before = None if saved is None else saved.arrays.get(name)
            digests = [digest(block) for block in split(array, BLOCK_NBYTES)]
            files = [_NEW] * len(digests)
            if before is not None and before.dtype == array.dtype:
                for index, (old, new, file) in enumerate(zip(before.digests, digests, before.files)):
                    files[index] = file if old == new else _NEW
            self.arrays[name] = BlockedArray(name, array.dtype, array.shape, files, digests)
            self._contents[name] = array
        for log in state.logs:
            self._sources.setdefault(log.key, []).append(log)
        for key, logs in self._sources.items():
            parts = [] if saved is None else saved.logs.get(key, [])
            self.logs[key] = [part for log in logs for part in _log_parts(log, parts)]
        if saved is not None:
            self._move_out(_segments_to_rewrite(saved.segments, self.live()))

    def live(self) -> Counter[int]:
        """The number of needed bytes in each segment."""
        live: Counter[int] = Counter()
        for array in self.arrays.values():
            for index, file in enumerate(array.files):
                live[file] += array.block(index)[-1]
        for key, parts in self.logs.items():
            for part in parts:
                live[part.file] += part.end - _needed_part(part, self._sources[key]).begin
        return live

    def _move_out(self, leaving: set[int]) -> None:
        """Write what is needed of some segments again. Parts of logs that become adjacent are joined."""
        for array in self.arrays.values():
            array.files[:] = [_NEW if file in leaving else file for file in array.files]
        for key, logs in self._sources.items():
            edges = {log.begin for log in logs}
            found: list[LogPart] = []
            for part in self.logs[key]:
                moved = _needed_part(part, logs) if part.file in leaving else part
                last = found[-1] if found else None
                together = last is not None and last.file == moved.file == _NEW and moved.begin not in edges
                if last is not None and together and moved.end - last.begin <= MAX_SEGMENT_NBYTES:
                    found[-1] = LogPart(last.begin, moved.end, _NEW)
                else:
                    found.append(moved)
            self.logs[key] = found

    def check_arrays(self, known: Manifest, source: Segments) -> None:
        """Refuse blocks that differ from the loaded ones because their file was damaged since."""
        for name, before in known.arrays.items():
            digests = self.arrays[name].digests if name in self.arrays else []
            for index, (old, new) in enumerate(zip(before.digests, digests)):
                if old != new:
                    check_source(source.item(*before.block(index)), _COPY_HINT)

    def items(self) -> list[Item]:
        """All bytes to write, without copying what is in memory."""
        found = [
            Item(array.block(index)[1], np.frombuffer(block, np.uint8), partial(array.files.__setitem__, index))
            for name, array in self.arrays.items()
            for index, (file, block) in enumerate(zip(array.files, split(self._contents[name], BLOCK_NBYTES)))
            if file == _NEW
        ]
        # Full blocks come first: their size is a multiple of the page size, so all of them can be mapped.
        found.sort(key=lambda item: len(item.content) < BLOCK_NBYTES)
        new = ((key, part) for key, parts in self.logs.items() for part in parts if part.file == _NEW)
        return found + [
            Item(part.name(key), self._read(key, part), partial(setattr, part, "file")) for key, part in new
        ]

    def _read(self, key: str, part: LogPart) -> NDArray[np.uint8]:
        log = next(log for log in self._sources[key] if log.begin <= part.begin and part.end <= log.end)
        contents = log.read(part.begin, part.end)
        for content in contents:
            check_source(content, _COPY_HINT)
        return contents[0] if len(contents) == 1 else np.concatenate(contents)


def _log_parts(log: Log, before: list[LogPart]) -> list[LogPart]:
    """The saved parts of a log that are still needed, followed by new parts."""
    kept = [part for part in before if part.end > log.begin and part.begin < log.end]
    known = kept[-1].end if kept else log.begin
    if kept and (kept[0].begin > log.begin or known > log.end):
        kept, known = [], log.begin
    while known < log.end:
        end = log.end
        if end - known > MAX_SEGMENT_NBYTES:
            place = int(np.searchsorted(log.cuts, known + MAX_SEGMENT_NBYTES, "right")) - 1
            end = int(log.cuts[place]) if place >= 0 and log.cuts[place] > known else end
        kept.append(LogPart(known, end, _NEW))
        known = end
    return kept


def _needed_part(part: LogPart, logs: list[Log]) -> LogPart:
    """A part to be written again, without its bytes that are no longer needed."""
    log = next(log for log in logs if log.begin < part.end and part.begin < log.end)
    return LogPart(max(part.begin, log.begin), part.end, _NEW)


def _segments_to_rewrite(segments: dict[int, Segment], live: Counter[int]) -> set[int]:
    """Segments of which less than half is needed and, if there are many small segments, the smallest of these.

    Large segments are not merged: each save would copy them again.
    """
    leaving = {number for number, segment in segments.items() if 2 * live[number] < segment.nbytes}
    small = [number for number, segment in segments.items() if 2 * segment.nbytes < MAX_SEGMENT_NBYTES]
    staying = sorted((live[number], number) for number in small if number not in leaving)
    if len(staying) > _MAX_SMALL:
        leaving |= {number for _, number in staying[: len(staying) - _MERGED_TO]}
    return leaving
