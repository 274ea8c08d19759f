"""``save_state``: a state becomes a checkpoint; the next one writes only what has changed since."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.checkpoints.dtypes import storable
from sb3_extra_buffers.checkpoints.folder import checkpoint_in, held, needed_of, remove_rest
from sb3_extra_buffers.checkpoints.manifest import (
    BLOCK_NBYTES,
    MAX_INLINE_NBYTES,
    Blocked,
    Manifest,
    Stretch,
    blocks_of,
    digest,
)
from sb3_extra_buffers.checkpoints.seal import check_origin
from sb3_extra_buffers.checkpoints.segments import (
    MAX_NBYTES,
    PATTERN,
    Segment,
    Segments,
    are_there,
    number_of,
    write_segments,
)
from sb3_extra_buffers.errors import FileError
from sb3_extra_buffers.heaps.state import Log, State

#: More small segments than this are merged: each is a mapped file for whoever loads.
_MAX_SMALL, _MERGED_TO = 64, 32
_NEW = -1


def save_state(
    path: str | os.PathLike[str], state: State, about: dict[str, Any], known: Manifest | None = None
) -> Manifest:
    """
    Make a folder hold a state. Until the last step it holds the one before; then, at once, this one.

    :param path: the folder; it is made if need be
    :param state: what to save
    :param about: what JSON can say about it
    :param known: what the last call for the same object returned, or what it was loaded from; if that is still what is
        there, only what has changed since is written
    :return: what is there now
    """
    folder = Path(path)
    with held(folder):
        there = checkpoint_in(folder)
        needed = needed_of(folder, there)
        remove_rest(folder, needed)  # what an earlier attempt has left may be the room that this one needs
        try:
            manifest = _saved(folder, state, about, known, there)
        except BaseException:
            with suppress(OSError, FileError):
                replaced = checkpoint_in(folder)  # read again: the error may have come when all was done
                remove_rest(folder, needed if replaced is None else replaced.segments)
            raise
        remove_rest(folder, manifest.segments)
    return manifest


def _saved(
    folder: Path, state: State, about: dict[str, Any], known: Manifest | None, there: Manifest | None
) -> Manifest:
    """Write what is not there yet, and then the manifest."""
    is_known = known is not None and there is not None and known.serial == there.serial
    saved = known if known is not None and is_known and are_there(folder, known.segments) else None
    plan = _Plan(state, saved)
    if known is not None and known.source is not None:
        plan.check_arrays(known, known.source)
    manifest = Manifest(about, state.facts, plan.inline, plan.arrays, plan.logs)
    segments = dict(saved.segments) if saved is not None else {}
    # A number is never used twice, also if a file has vanished: somebody may still look for what it was.
    numbers = [number_of(found) or 0 for found in folder.glob(PATTERN)]
    numbers += [number for one in (known, there) if one is not None for number in one.segments]
    for number, segment, names in write_segments(folder, plan.items(), 1 + max(numbers, default=0)):
        segments[number] = segment
        plan.settle(number, names)
    needed = plan.needed()
    manifest.segments = {number: part for number, part in segments.items() if number in needed}
    manifest.write(folder)
    manifest.inline = {}  # of what the owner goes on to change, nothing is kept
    return manifest


class _Plan:
    """What stays where it is, and what is written.

    :param state: what to save
    :param saved: what was saved before; ``None`` if that is not there
    """

    def __init__(self, state: State, saved: Manifest | None) -> None:
        self.inline: dict[str, NDArray[Any]] = {}
        self.arrays: dict[str, Blocked] = {}
        self.logs: dict[str, list[Stretch]] = {}
        self._contents: dict[str, NDArray[Any]] = {}
        self._sources: dict[str, list[Log]] = {}
        self._places: dict[str, tuple[str, int]] = {}
        self._plan_arrays(state, saved)
        self._plan_logs(state, saved)
        if saved is not None:
            self._move_out(_to_leave(saved.segments, self._live()))

    def _plan_arrays(self, state: State, saved: Manifest | None) -> None:
        for name, value in state.arrays.items():
            array = storable(name, value)
            if array.nbytes <= MAX_INLINE_NBYTES:
                self.inline[name] = array
                continue
            before = None if saved is None else saved.arrays.get(name)
            digests = [digest(block) for block in blocks_of(array)]
            files = [_NEW] * len(digests)
            if before is not None and before.dtype == array.dtype:
                for index, (old, new, file) in enumerate(zip(before.digests, digests, before.files)):
                    files[index] = file if old == new else _NEW
            self.arrays[name] = Blocked(array.dtype, array.shape, files, digests)
            self._contents[name] = array

    def _plan_logs(self, state: State, saved: Manifest | None) -> None:
        for log in state.logs:
            self._sources.setdefault(log.key, []).append(log)
        for key, logs in self._sources.items():
            before = [] if saved is None else saved.logs.get(key, [])
            self.logs[key] = [part for log in logs for part in _stretches(log, before)]

    def _live(self) -> Counter[int]:
        """How many bytes of each segment are needed."""
        live: Counter[int] = Counter()
        for array in self.arrays.values():
            for index, file in enumerate(array.files):
                live[file] += array.block_nbytes(index)
        for key, parts in self.logs.items():
            for part in parts:
                live[part.file] += part.end - _needed_part(part, self._sources[key]).begin
        return live

    def _move_out(self, leaving: set[int]) -> None:
        """Write again what is needed of some segments; stretches that come to lie side by side become one."""
        for array in self.arrays.values():
            array.files[:] = [_NEW if file in leaving else file for file in array.files]
        for key, logs in self._sources.items():
            edges = {log.begin for log in logs}
            found: list[Stretch] = []
            for part in self.logs[key]:
                moved = _needed_part(part, logs) if part.file in leaving else part
                last = found[-1] if found else None
                together = last is not None and last.file == moved.file == _NEW and moved.begin not in edges
                if last is not None and together and moved.end - last.begin <= MAX_NBYTES:
                    found[-1] = Stretch(last.begin, moved.end, _NEW)
                else:
                    found.append(moved)
            self.logs[key] = found

    def check_arrays(self, known: Manifest, source: Segments) -> None:
        """Refuse blocks that differ from what was saved if it was not their owner who has changed them.

        :param known: what the state was loaded from
        :param source: its segments
        """
        for name, array in self.arrays.items():
            before = known.arrays.get(name)
            if before is not None:
                for index, (old, new) in enumerate(zip(before.digests, array.digests)):
                    if old != new:
                        source.check(before.files[index], block_name(name, index))

    def items(self) -> dict[str, NDArray[np.uint8]]:
        """All bytes that are to be written, by name. What is in memory is not copied."""
        # Blocks of full size first: they are as large as pages, so all of them can be mapped where they are needed.
        found: dict[str, NDArray[np.uint8]] = {}
        last: dict[str, NDArray[np.uint8]] = {}
        for name, array in self.arrays.items():
            for index, (file, block) in enumerate(zip(array.files, blocks_of(self._contents[name]))):
                if file == _NEW:
                    content = np.frombuffer(block, np.uint8)
                    group = found if len(content) == BLOCK_NBYTES else last
                    group[self._placed(block_name(name, index), name, index)] = content
        found.update(last)
        for key, parts in self.logs.items():
            for index, part in enumerate(parts):
                if part.file == _NEW:
                    found[self._placed(stretch_name(key, part.begin), key, index)] = self._read(key, part)
        return found

    def _placed(self, item: str, name: str, index: int) -> str:
        self._places[item] = name, index
        return item

    def _read(self, key: str, part: Stretch) -> NDArray[np.uint8]:
        log = next(log for log in self._sources[key] if log.begin <= part.begin and part.end <= log.end)
        contents = log.read(part.begin, part.end)
        for content in contents:
            check_origin(content)
        return contents[0] if len(contents) == 1 else np.concatenate(contents)

    def settle(self, number: int, items: list[str]) -> None:
        """Note which segment items were written to."""
        for item in items:
            name, index = self._places[item]
            if name in self.arrays and item == block_name(name, index):
                self.arrays[name].files[index] = number
            else:
                part = self.logs[name][index]
                self.logs[name][index] = Stretch(part.begin, part.end, number)

    def needed(self) -> set[int]:
        """All segments that something is in."""
        return set(self._live())


def block_name(array: str, index: int) -> str:
    """What a block of an array is called in its segment."""
    return f"{array}#{index}"


def stretch_name(log: str, begin: int) -> str:
    """What a stretch of a log is called in its segment."""
    return f"{log}@{begin}"


def _stretches(log: Log, before: list[Stretch]) -> list[Stretch]:
    """A log as stretches: those that were saved and are still needed, and what has come since."""
    kept = [part for part in before if part.end > log.begin and part.begin < log.end]
    known = kept[-1].end if kept else log.begin
    if kept and (kept[0].begin > log.begin or known > log.end):
        kept, known = [], log.begin
    while known < log.end:
        end = log.end
        if end - known > MAX_NBYTES:
            place = int(np.searchsorted(log.cuts, known + MAX_NBYTES, "right")) - 1
            end = int(log.cuts[place]) if place >= 0 and log.cuts[place] > known else end
        kept.append(Stretch(known, end, _NEW))
        known = end
    return kept


def _needed_part(part: Stretch, logs: list[Log]) -> Stretch:
    """A stretch to be written again, without what is not needed any more."""
    log = next(log for log in logs if log.begin < part.end and part.begin < log.end)
    return Stretch(max(part.begin, log.begin), part.end, _NEW)


def _to_leave(segments: dict[int, Segment], live: Counter[int]) -> set[int]:
    """Segments of which little is needed; and if there are many small ones, the smallest of these.

    What is large already would only be copied, at every save again.
    """
    leaving = {number for number, segment in segments.items() if 2 * live[number] < segment.nbytes}
    small = [number for number, segment in segments.items() if 2 * segment.nbytes < MAX_NBYTES]
    staying = sorted((live[number], number) for number in small if number not in leaving)
    if len(staying) > _MAX_SMALL:
        leaving |= {number for _, number in staying[: len(staying) - _MERGED_TO]}
    return leaving
