"""``Scattered``: an array that was saved, whose blocks lie in files, one here and one there."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.checkpoints.array_file import ArrayFile
from sb3_extra_buffers.checkpoints.manifest import BLOCK_NBYTES, Blocked
from sb3_extra_buffers.checkpoints.mapping import can_map, is_mappable, is_page, map_over, mappable
from sb3_extra_buffers.checkpoints.saving import block_name
from sb3_extra_buffers.checkpoints.segments import Segments

#: An array in more pieces than this is copied: a system has a limited number of mappings.
_MAX_RUNS = 1024


@dataclass
class _Run:
    """Blocks that follow each other in the array and in a file; or one that does not fill its pages.

    :param begin: where in the array
    :param end: behind it
    :param file: which one
    :param offset: where in the file
    """

    begin: int
    end: int
    file: ArrayFile
    offset: int

    @property
    def is_pages(self) -> bool:
        return is_page(self.begin) and is_page(self.end) and is_page(self.offset)


class Scattered:
    """The bytes of an array. Where they lie in their files as whole pages, they need not be read to be somewhere else.

    :param name: of the array
    :param blocked: where its blocks are
    :param segments: the files; they stay mapped as long as this object is there
    """

    def __init__(self, name: str, blocked: Blocked, segments: Segments) -> None:
        # All blocks are found before any memory is asked for: what they do not have, cannot be claimed.
        self._name, self._blocked, self._segments = name, blocked, segments
        runs: list[_Run] = []
        for index, number in enumerate(blocked.files):
            nbytes, begin = blocked.block_nbytes(index), index * BLOCK_NBYTES
            run = _Run(begin, begin + nbytes, *segments.place(number, block_name(name, index), nbytes))
            if runs and runs[-1].is_pages and run.is_pages and _follows(runs[-1], run):
                runs[-1].end = run.end
            else:
                runs.append(run)
        self._runs = [run for run in runs if run.is_pages and can_map()]
        if len(self._runs) > _MAX_RUNS:
            self._runs = []

    def array(self) -> NDArray[Any]:
        """The array, in memory of its own that can be written to."""
        nbytes, shape = self._blocked.nbytes, self._blocked.shape
        content = mappable(nbytes) if self._runs else np.empty(nbytes, np.uint8)
        self.lay(content)
        return content.view(self._blocked.dtype).reshape(shape)

    def lay(self, target: NDArray[np.uint8]) -> None:
        """Give memory the content of the array.

        :param target: bytes; as many as the array has
        """
        done = 0
        for _, runs in groupby(self._runs if is_mappable(target) else (), lambda run: id(run.file)):
            first = next(runs)
            with first.file.opened() as descriptor:
                if descriptor is None:
                    continue  # what was replaced or removed since is copied out of the mapping that was made before
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
            block = self._segments.item(self._blocked.files[index], block_name(self._name, index), nbytes)
            target[place : place + nbytes] = block


def _follows(run: _Run, other: _Run) -> bool:
    ends = run.end, run.offset + run.end - run.begin
    return run.file is other.file and ends == (other.begin, other.offset)
