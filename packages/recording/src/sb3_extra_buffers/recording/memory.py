"""What the frames of a recording take, and what they would take as they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sb3_extra_buffers.compressed.report import readable


@dataclass(frozen=True)
class MemoryUse:
    """The frames of a recording in bytes. Without frames, everything is 0."""

    #: As they are.
    raw_nbytes: int
    #: As they are stored, in memory or in a file.
    stored_nbytes: int
    #: Memory besides: indices, tables, and the frames that the next one is compared with.
    overhead: int
    #: How they are stored, and for an automatic choice why.
    codec: str

    @property
    def ratio(self) -> float:
        """How many times smaller frames are than as they are, overhead included."""
        kept = self.stored_nbytes + self.overhead
        return self.raw_nbytes / kept if kept and self.raw_nbytes else 1.0

    def __str__(self) -> str:
        kept = self.stored_nbytes + self.overhead
        return f"{readable(self.raw_nbytes)} as {readable(kept)}, {self.ratio:.1f} times smaller; {self.codec}"


#: That of a recording without frames.
NO_FRAMES = MemoryUse(0, 0, 0, "no frames")


def raw_nbytes(count: int, shape: tuple[int, int, int], dtype: np.dtype[Any]) -> int:
    """What frames take as they are."""
    return count * math.prod(shape) * dtype.itemsize
