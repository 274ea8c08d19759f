"""``Companions``: two arrays that are read at the same places, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.views import Bytes, Indices

if TYPE_CHECKING:
    from sb3_extra_buffers.arrays.array import CompressedArray
    from sb3_extra_buffers.stores import Frames


class Companions:
    """Observations and next observations whose frames are mostly the same: whoever reads the one gets the other.

    Stable-Baselines3 asks for the two in two steps. Where that is to be expected, the first step reads both, and the
    second finds what it wants.

    :param frames: where both are
    :param observations: the array over the first plane
    :param following: the array over the second plane
    """

    def __init__(self, frames: Frames, observations: CompressedArray, following: CompressedArray) -> None:
        self.is_active = False
        self._frames = frames
        self._arrays = (observations, following)
        self._ahead: tuple[CompressedArray, Indices, NDArray[Any]] | None = None

    def expect_both(self, expected: bool) -> None:
        """Whether both are going to be read, at the same places."""
        self.is_active, self._ahead = expected, None

    def read(self, array: CompressedArray, cells: Indices) -> NDArray[Any]:
        """What is at these cells of one of the two."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[0] is array and np.array_equal(ahead[1], cells):
            return ahead[2]
        own, following = (part.empty(cells) for part in self._arrays)
        self._frames.read_both(cells.reshape(-1), as_rows(own, cells.size), as_rows(following, cells.size))
        if array is self._arrays[0]:
            self._ahead = self._arrays[1], cells, following
            return own
        self._ahead = self._arrays[0], cells, own
        return following


def pair(frames: Frames, observations: CompressedArray, following: CompressedArray) -> Companions:
    """Make two arrays companions."""
    companions = Companions(frames, observations, following)
    observations.companions = following.companions = companions
    return companions


def as_rows(values: NDArray[Any], count: int) -> Bytes:
    """Cells as bytes, a row for each."""
    return values.reshape(count, -1).view(np.uint8)
