"""``load_state``: open the state in a checkpoint without reading its arrays and logs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.checkpoints.array_file import ArrayFile
from sb3_extra_buffers.checkpoints.checksums import UnreadBytes
from sb3_extra_buffers.checkpoints.manifest import (
    BLOCK_NBYTES,
    MANIFEST_NAME,
    BlockedArray,
    Manifest,
    Segments,
    read_manifest,
)
from sb3_extra_buffers.checkpoints.memory_map import allocate_mappable, can_map, is_mappable, is_page_aligned, map_over
from sb3_extra_buffers.errors import FileDamagedError, FileMissingError
from sb3_extra_buffers.heaps.state import Piece, State

#: Attempts to open a checkpoint while another process saves to the same folder.
_ATTEMPTS = 20
#: Checkpoints up to this size are verified unless the caller decides: that takes some hundredths of a second.
_SMALL_NBYTES = 1 << 26
#: An array in more runs than this is copied: a process may have a limited number of mappings.
_MAX_RUNS = 1024


def load_state(path: str | os.PathLike[str], verify: bool | None = False) -> tuple[State, Manifest]:
    """Load the state from a folder. Logs and most arrays stay in their files until they are accessed.

    Arrays are compared with their checksums at once, logs when they are first read.

    :param path: of the folder
    :param verify: read everything and compare it with its checksums now; ``None``: if it has at most 64 MB
    :return: the state, and the manifest that lets :func:`save_state` write only what has changed
    """
    folder = Path(path)
    for _ in range(_ATTEMPTS):
        manifest = read_manifest(folder)
        try:
            segments = Segments(folder, manifest.segments)
        except FileMissingError as error:
            if read_manifest(folder).serial != manifest.serial:
                continue
            raise FileDamagedError(str(folder), (f"{Path(error.path).name} is missing",)) from None
        if verify is None:
            verify = sum(segment.nbytes for segment in manifest.segments.values()) <= _SMALL_NBYTES
        if verify:
            segments.verify()
        manifest.source = segments
        try:
            return _assembled(manifest, segments, verify), manifest
        except KeyError as error:
            problem = f"it refers to {error.args[0]}, which are missing"
            raise FileDamagedError(str(folder / MANIFEST_NAME), (problem,)) from None
    raise FileDamagedError(str(folder), ("its files change faster than they can be opened",), "Try again.")


def _assembled(manifest: Manifest, segments: Segments, is_verified: bool) -> State:
    stored = {name: _StoredArray(array, segments, is_verified) for name, array in manifest.arrays.items()}
    arrays = {**manifest.inline, **{name: found.array() for name, found in stored.items()}}
    logs = {
        key: [(part.begin, segments.item(part.file, part.name(key), part.end - part.begin)) for part in parts]
        for key, parts in manifest.logs.items()
    }
    unread = None if is_verified else UnreadBytes(content for parts in logs.values() for _, content in parts)
    pieces = {key: [Piece(*part, unread) for part in parts] for key, parts in logs.items()}
    return State(manifest.facts, arrays, [], pieces, stored)


@dataclass
class _Run:
    """Whole pages of an array, from ``begin`` to ``end``, that are contiguous in a file, ``shift`` bytes further."""

    begin: int
    end: int
    file: ArrayFile
    shift: int


class _StoredArray:
    """An array whose blocks are in several segments, which stay mapped as long as this object exists.

    Whole pages are mapped, the rest is copied.
    """

    def __init__(self, blocked: BlockedArray, segments: Segments, is_verified: bool) -> None:
        # All blocks are looked up before memory is allocated, so a file cannot claim more than it has.
        self._blocked, self._segments = blocked, segments
        runs: list[_Run] = []
        for index, number in enumerate(blocked.files):
            nbytes, begin, block = blocked.block_nbytes(index), index * BLOCK_NBYTES, blocked.block_name(index)
            file = segments.file_with(number, block, nbytes)
            if not is_verified:
                file.check(block)  # here, because nobody can tell when a number in an array is read
            last, shift = runs[-1] if runs else None, file.offset(block) - begin
            if not can_map() or not is_page_aligned(begin, nbytes, shift):
                continue
            if last is not None and last.file is file and (last.end, last.shift) == (begin, shift):
                last.end += nbytes
            else:
                runs.append(_Run(begin, begin + nbytes, file, shift))
        self._runs = runs if len(runs) <= _MAX_RUNS else []

    def array(self) -> NDArray[Any]:
        """The array, in new writable memory."""
        nbytes = self._blocked.nbytes
        content = allocate_mappable(nbytes) if self._runs else np.empty(nbytes, np.uint8)
        self.lay(content)
        return content.view(self._blocked.dtype).reshape(self._blocked.shape)

    def lay(self, target: NDArray[np.uint8]) -> None:
        """Fill memory of the same size with the content of the array, by mapping where possible."""
        done = 0
        for _, runs in groupby(self._runs if is_mappable(target) else (), lambda run: id(run.file)):
            first = next(runs)
            with first.file.opened() as descriptor:
                if descriptor is None:
                    continue  # replaced or removed: copied from the existing mapping below
                for run in chain((first,), runs):
                    self._copy(target, done, run.begin)
                    map_over(target[run.begin : run.end], descriptor, run.begin + run.shift)
                    done = run.end
        self._copy(target, done, self._blocked.nbytes)

    def _copy(self, target: NDArray[np.uint8], begin: int, end: int) -> None:
        """Copy whole blocks."""
        for place in range(begin, end, BLOCK_NBYTES):
            index = place // BLOCK_NBYTES
            nbytes = self._blocked.block_nbytes(index)
            block = self._blocked.files[index], self._blocked.block_name(index), nbytes
            target[place : place + nbytes] = self._segments.item(*block)
