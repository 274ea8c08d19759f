"""The hot paths in numpy: the reference, and what works where nothing is compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from sb3_extra_buffers.frames.kernels import ChunkSource, KernelsPlugin
from sb3_extra_buffers.frames.numpy_read import read_frames
from sb3_extra_buffers.frames.numpy_write import brings_new, write_observation
from sb3_extra_buffers.frames.packing import patch
from sb3_extra_buffers.frames.streams import Streams
from sb3_extra_buffers.memory import BatchMemory, Bytes, Indices
from sb3_extra_buffers.registry import hookimpl

#: How many arrays of a batch's size are needed at a time.
_BLOCKS = 4


class NumpyKernels:
    """A loop over observations where they are written, and over their frames where they are read."""

    name = "numpy"

    def __init__(self) -> None:
        # Memory for a batch comes page by page from the system if it is not used again: half of the time of a batch.
        self._memory = BatchMemory(_BLOCKS)

    @property
    def nbytes_for_batches(self) -> int:
        """How much memory is held for the batches to come; kernels that hold none need not say so."""
        return self._memory.nbytes

    def write(
        self, streams: Streams, references: Indices, rows: Bytes, begin: int, following: Bytes | None = None, /
    ) -> int:
        count, planes = len(rows), [rows] if following is None else [rows, following]
        for index in range(begin, count * len(planes)):
            plane, row = divmod(index, count)
            reference = int(references[row]) + plane * streams.cells
            stream = reference % streams.streams
            frames = streams.geometry.split(planes[plane][row : row + 1])[0]
            if streams.sizes[streams.open[stream]] >= streams.chunk and brings_new(streams, stream, frames):
                return index
            write_observation(streams, stream, reference, frames)
        return count * len(planes)

    def measure(self, old: Bytes, new: Bytes, /) -> int:
        steps, content = patch(old, new)
        return len(steps) + len(content)

    def read(
        self, streams: Streams, source: ChunkSource, references: Indices, out: Bytes, following: Bytes | None = None, /
    ) -> None:
        geometry, outs = streams.geometry, [out] if following is None else [out, following]
        both = references if following is None else np.concatenate([references, references + streams.cells])
        # Where frames lie one behind the other, they are written to where they are wanted; else on the way there.
        rooms = outs if geometry.pixels == 1 else [np.empty_like(rows) for rows in outs]
        read_frames(streams, source, both, rooms, self._memory)
        if geometry.pixels != 1:
            for rows, room in zip(outs, rooms):
                geometry.join(room.reshape(-1, geometry.depth, geometry.frame_nbytes), rows)

    def __reduce__(self) -> tuple[Any, ...]:
        from sb3_extra_buffers.frames.creation import create

        return create, ()  # whatever is installed where it is loaded


@hookimpl
def sb3_extra_buffers_frame_kernels() -> KernelsPlugin:
    return KernelsPlugin(protocol=1, factory=NumpyKernels, summary="Frames in numpy: works everywhere")
