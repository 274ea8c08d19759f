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
#: An array in more runs than this is copied: a process may have a limited number of mappings.
_MAX_RUNS = 1024


def load_state(path: str | os.PathLike[str], verify: bool = False) -> tuple[State, Manifest]:
    """Load the state from a folder. Logs and most arrays stay in their files until they are accessed.

    :param path: of the folder
    :param verify: read everything and compare it with its checksums
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
        if verify:
            segments.verify()
        else:
            manifest.source = segments
        try:
            return _assembled(manifest, segments), manifest
        except KeyError as error:
            problem = f"it refers to {error.args[0]}, which are missing"
            raise FileDamagedError(str(folder / MANIFEST_NAME), (problem,)) from None
    raise FileDamagedError(str(folder), ("its files change faster than they can be opened",), "Try again.")


def _assembled(manifest: Manifest, segments: Segments) -> State:
    stored = {name: _StoredArray(array, segments) for name, array in manifest.arrays.items()}
    arrays = {**manifest.inline, **{name: found.array() for name, found in stored.items()}}
    pieces: dict[str, list[Piece]] = {key: [] for key in manifest.logs}
    for key, parts in manifest.logs.items():
        for part in parts:
            content = segments.item(part.file, part.name(key), part.end - part.begin)
            pieces[key].append(Piece(part.begin, content))
    return State(manifest.facts, arrays, [], pieces, stored)


@dataclass
class _Run:
    """Blocks that are contiguous in the array and in a file, or a block that does not fill its pages.

    ``begin`` and ``end`` are offsets in the array, ``offset`` is that of the first byte in the file.
    """

    begin: int
    end: int
    file: ArrayFile
    offset: int

    @property
    def is_pages(self) -> bool:
        return is_page_aligned(self.begin, self.end, self.offset)

    def precedes(self, other: _Run) -> bool:
        """Whether another run continues this one, as whole pages."""
        ends = self.end, self.offset + self.end - self.begin
        is_next = self.file is other.file and ends == (other.begin, other.offset)
        return is_next and self.is_pages and other.is_pages


class _StoredArray:
    """An array whose blocks are in several segments, which stay mapped as long as this object exists.

    Whole pages are mapped, the rest is copied.
    """

    def __init__(self, blocked: BlockedArray, segments: Segments) -> None:
        # All blocks are looked up before memory is allocated, so a file cannot claim more than it has.
        self._blocked, self._segments = blocked, segments
        runs: list[_Run] = []
        for index, number in enumerate(blocked.files):
            nbytes, begin, block = blocked.block_nbytes(index), index * BLOCK_NBYTES, blocked.block_name(index)
            file = segments.file_with(number, block, nbytes)
            run = _Run(begin, begin + nbytes, file, file.offset(block))
            if runs and runs[-1].precedes(run):
                runs[-1].end = run.end
            else:
                runs.append(run)
        self._runs = [run for run in runs if run.is_pages and can_map()]
        if len(self._runs) > _MAX_RUNS:
            self._runs = []

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
                    map_over(target[run.begin : run.end], descriptor, run.offset)
                    done = run.end
        self._copy(target, done, self._blocked.nbytes)

    def _copy(self, target: NDArray[np.uint8], begin: int, end: int) -> None:
        """Copy whole blocks."""
        for place in range(begin, end, BLOCK_NBYTES):
            index = place // BLOCK_NBYTES
            nbytes = self._blocked.block_nbytes(index)
            block = self._blocked.files[index], self._blocked.block_name(index), nbytes
            target[place : place + nbytes] = self._segments.item(*block)
