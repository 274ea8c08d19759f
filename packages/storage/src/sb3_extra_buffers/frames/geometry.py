"""Geometry of stacked observations: how frames lie in an observation, and which stacks an image may be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sb3_extra_buffers.memory import Bytes

#: The longest axis that can be a stack; a longer one is a side of an image.
MAX_STACK = 30


@dataclass(frozen=True)
class FrameGeometry:
    """An observation as ``depth`` frames, oldest first.

    Its bytes, seen as ``(pixels, depth, group)``, hold frame ``j`` at ``[:, j]``. Frames that are stacked along the
    first axis are contiguous: one pixel. Along the last axis, they are interleaved pixel by pixel. A frame has
    ``pixels`` pieces of ``group`` bytes.
    """

    depth: int
    pixels: int
    group: int

    @property
    def frame_nbytes(self) -> int:
        return self.pixels * self.group

    @property
    def row_nbytes(self) -> int:
        return self.depth * self.frame_nbytes

    def split(self, rows: Bytes) -> Bytes:
        """Observations ``(n, row_nbytes)`` as frames ``(n, depth, frame_nbytes)``; no copy if these are contiguous."""
        scattered = rows.reshape(len(rows), self.pixels, self.depth, self.group)
        return scattered.transpose(0, 2, 1, 3).reshape(len(rows), self.depth, self.frame_nbytes)

    def join(self, frames: Bytes, rows: Bytes) -> None:
        """Write frames, shape ``(n, depth, frame_nbytes)``, into C-contiguous observations ``(n, row_nbytes)``."""
        scattered = rows.reshape(len(rows), self.pixels, self.depth, self.group)
        scattered[:] = frames.reshape(len(rows), self.depth, self.pixels, self.group).transpose(0, 2, 1, 3)

    def shifts(self, before: Bytes, after: Bytes) -> bool | None:
        """Whether ``after`` is ``before`` shifted by one frame; ``None`` if inconclusive: its newest two are equal."""
        older, newer = self.split(before[np.newaxis])[0], self.split(after[np.newaxis])[0]
        if not np.array_equal(newer[:-1], older[1:]):
            return False
        return None if np.array_equal(newer[-1], newer[-2]) else True

    def __str__(self) -> str:
        where = "" if self.depth == 1 else ", stacked first" if self.pixels == 1 else ", stacked last"
        return f"{self.depth} x {self.frame_nbytes} bytes{where}"


def whole(row_nbytes: int) -> FrameGeometry:
    """The geometry of observations that are one frame each."""
    return FrameGeometry(1, 1, row_nbytes)


def stacks(shape: tuple[int, ...], itemsize: int) -> Iterator[FrameGeometry]:
    """All ways to see an image as a stack of two frames or more, the deepest first."""
    if len(shape) < 3:
        return
    size = int(np.prod(shape))
    found = []
    for axis, is_last in ((shape[0], False), (shape[-1], True)):
        for depth in range(2, min(axis, MAX_STACK) + 1):
            if axis % depth == 0 and axis <= MAX_STACK:
                group = (axis // depth if is_last else size // depth) * itemsize
                found.append(FrameGeometry(depth, size // axis if is_last else 1, group))
    yield from sorted(found, key=lambda geometry: -geometry.depth)
