"""``numba``: core's frame kernels, compiled. The same bytes and the same numbers, at the speed of memory."""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np
from numpy import ndarray
from numpy.typing import NDArray

from sb3_extra_buffers.errors import PayloadError
from sb3_extra_buffers.frames import ChunkSource, KernelsPlugin, Known, Streams, create, hookimpl
from sb3_extra_buffers.frames.packing import PADDING, worst_steps_nbytes
from sb3_extra_buffers.frames.streams import MAX_BACK
from sb3_extra_buffers.memory import Bytes, Indices, untouched
from sb3_extra_buffers_codec_rle_numba.channel_kernels import CHANNELS, take_channels_apart
from sb3_extra_buffers_codec_rle_numba.read_kernels import plan_read, read_rows
from sb3_extra_buffers_codec_rle_numba.write_kernels import patch_nbytes, write_rows

_NO_ROWS = np.empty((0, 1), np.uint8)
_NOTHING = Known(np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.uint64))
_MAX_STAMP = 2**32 - 1


class _Workspace:
    """What kernels need of one :class:`Streams`: its addresses, and memory for results in between."""

    def __init__(self, streams: Streams) -> None:
        geometry, slots = streams.geometry, streams.slots
        self.mark = untouched(slots, np.uint32)
        self.stamp = 0
        self.lock = Lock()
        #: The place of a chunk among those that a batch needs, by slot.
        self.place = untouched(slots, np.uint32)
        #: How many chunks an observation can reach into.
        self.most_chunks = MAX_BACK // streams.chunk + 2
        scattered = 0 if geometry.pixels == 1 else 2 * geometry.row_nbytes
        # What an observation and the next one need, and room for both if their frames are scattered.
        self.scratch_nbytes = 32 * geometry.depth + scattered
        # A whole observation if its frames are scattered; numbers, positions, rows and distances of its frames.
        self._scratch = np.zeros((geometry.row_nbytes if scattered else 0) + 25 * geometry.depth + 8, np.uint8)
        own = len(streams.newest) - streams.streams
        filling = streams.filling
        # In the order of the table. Arrays stand for their addresses.
        entries: tuple[int | NDArray[Any], ...] = (
            streams.chunk,
            geometry.depth,
            geometry.pixels,
            geometry.group,
            streams.streams,
            streams.cells,
            MAX_BACK,
            own,
            streams.room,
            filling.counts.itemsize,
            streams.newest,
            streams.pattern,
            streams.backs,
            streams.reach,
            streams.last,
            streams.last_row,
            streams.last_number,
            streams.last_position,
            streams.total,
            streams.repeated,
            streams.open,
            filling.counts,
            filling.steps,
            filling.steps.shape[1],
            filling.content,
            filling.content.shape[1],
            filling.filled,
            filling.first_nbytes,
            filling.base,
            filling.tail,
            streams.previous,
            streams.sizes,
            streams.users,
            streams.free,
            streams.numbers,
            self.mark,
            self.place,
            self._scratch,
        )
        self.table = np.array([part if isinstance(part, int) else part.ctypes.data for part in entries], np.uint64)

    def next_stamp(self) -> int:
        """A number that no slot is marked with."""
        if self.stamp == _MAX_STAMP:
            self.mark.fill(0)
            self.stamp = 0
        self.stamp += 1
        return self.stamp


class NumbaKernels:
    """One compiled call for each batch."""

    name = "numba"

    def write(
        self, streams: Streams, references: Indices, rows: Bytes, begin: int, following: Bytes | None = None, /
    ) -> int:
        workspace = streams.workspace
        if not isinstance(workspace, _Workspace):
            workspace = self._workspace(streams)
        found: int = write_rows(workspace.table, references, rows, _NO_ROWS if following is None else following, begin)
        return found

    def measure(self, old: Bytes, new: Bytes, /) -> int:
        steps, content = np.empty(worst_steps_nbytes(len(new)), np.uint8), np.empty(len(new) + PADDING, np.uint8)
        return int(patch_nbytes(old, new, steps, content))

    def read(
        self, streams: Streams, source: ChunkSource, references: Indices, out: Bytes, following: Bytes | None = None, /
    ) -> None:
        # Kernels run without the interpreter's lock, and the plan of a batch is in the workspace until it is read.
        workspace = self._workspace(streams)
        with workspace.lock:
            self._read(workspace, source, references, out, following)

    def contiguous(self, array: NDArray[Any], /) -> NDArray[Any]:
        # Observations as VecTransposeImage hands them over. Whatever else is not contiguous is rare: numpy knows it.
        if type(array) is ndarray and array.ndim == 4 and array.shape[1] in CHANNELS and array.dtype == np.uint8:
            pixels = array.transpose(0, 2, 3, 1)
            if pixels.flags.c_contiguous:
                out = np.empty(array.shape, np.uint8)
                take_channels_apart(pixels, out)
                return out
        return np.ascontiguousarray(array)

    def _read(
        self, workspace: _Workspace, source: ChunkSource, references: Indices, out: Bytes, following: Bytes | None
    ) -> None:
        both, known = following is not None, source.known() or _NOTHING
        # For each chunk that is needed: its slot, then where it is, how long it is, where its base is.
        plan = np.empty((4, (1 + both) * len(references) * workspace.most_chunks), np.int64)
        count = plan_read(workspace.table, references, both, workspace.next_stamp(), *known, plan)
        places = None
        if count < 0:
            count = -count
            places = source.place(plan[0, :count])  # kept: it may hold the memory that is read
            plan[1, :count], plan[2, :count], plan[3, :count] = places.addresses, places.lengths, places.bases
        more = _NO_ROWS if following is None else following
        scratch = np.empty(workspace.scratch_nbytes, np.uint8)
        damaged = read_rows(workspace.table, references, plan, out, more, scratch)
        if damaged >= 0:
            problem = "its patches reach beyond their frame, or beyond its end"
            raise PayloadError("frames", int(plan[2, damaged]), problem)

    def _workspace(self, streams: Streams) -> _Workspace:
        workspace = streams.workspace
        if not isinstance(workspace, _Workspace):
            workspace = streams.workspace = _Workspace(streams)
        return workspace

    def __reduce__(self) -> tuple[Any, ...]:
        return create, ()  # whatever is installed where it is loaded


@hookimpl
def sb3_extra_buffers_frame_kernels() -> KernelsPlugin:
    return KernelsPlugin(protocol=1, factory=NumbaKernels, summary="Frames at memory speed, compiled by numba")
