"""``numba``: core's frame kernels, compiled. The same bytes and the same numbers, at the speed of memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import PayloadError
from sb3_extra_buffers.frames import ChunkSource, KernelsPlugin, Streams, create, hookimpl
from sb3_extra_buffers.frames.packing import count_dtype, worst_nbytes
from sb3_extra_buffers.views import Bytes, Indices
from sb3_extra_buffers_codec_rle_numba.stream_kernels import pack_chunk, plan_read, read_rows, write_rows

_NO_REFERENCES, _NO_ROWS = np.empty(0, np.int64), np.empty((0, 1), np.uint8)
_MAX_STAMP = 2**32 - 1


class _Workspace:
    """What kernels need of one :class:`Streams`: its addresses, and memory for results in between."""

    def __init__(self, streams: Streams) -> None:
        geometry, slots = streams.geometry, streams.slots
        self.mark = np.zeros(slots, np.uint32)
        self.stamp = 0
        self.address = np.zeros(slots, np.uint64)
        self.length = np.zeros(slots, np.int64)
        self.base = np.zeros(slots, np.uint64)
        self._scratch = np.zeros(geometry.row_nbytes + 17 * geometry.depth + 8, np.uint8)
        own = len(streams.newest) - streams.streams
        numbers = (streams.chunk, geometry.depth, geometry.pixels, geometry.group, streams.streams, streams.cells, own)
        arrays: tuple[NDArray[Any], ...] = (
            streams.newest,
            streams.pattern,
            streams.backs,
            streams.reach,
            streams.last,
            streams.last_number,
            streams.last_position,
            streams.staged,
            streams.staged_count,
            streams.total,
            streams.open,
            streams.previous,
            streams.users,
            streams.free,
            streams.numbers,
            self.mark,
            self.address,
            self.length,
            self.base,
            self._scratch,
        )
        self.table = np.array([*numbers, *(array.ctypes.data for array in arrays)], np.uint64)

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

    def __init__(self) -> None:
        self._workspaces: WeakKeyDictionary[Streams, _Workspace] = WeakKeyDictionary()

    def write(
        self, streams: Streams, references: Indices, rows: Bytes, begin: int, following: Bytes | None = None, /
    ) -> int:
        more = _NO_ROWS if following is None else following
        return int(write_rows(self._workspace(streams).table, references, rows, more, begin))

    def pack(self, frames: Bytes, base: Bytes, /) -> tuple[Bytes, int]:
        out = np.empty(worst_nbytes(*frames.shape), np.uint8)
        width = np.uint64(count_dtype(frames.shape[1]).itemsize)
        nbytes, first = pack_chunk(frames, base, width, out, np.empty(frames.size, np.uint8))
        return out[:nbytes], int(first)

    def read(self, streams: Streams, source: ChunkSource, references: Sequence[Indices], outs: Sequence[Bytes]) -> None:
        workspace = self._workspace(streams)
        together = references[0] if len(references) == 1 else np.concatenate(references)
        reach = int(streams.reach.max()) // streams.chunk + 2
        slots = np.empty(len(together) * reach, np.int64)
        slots = slots[: plan_read(workspace.table, together, workspace.next_stamp(), slots)]
        places = source.place(slots) if len(slots) else None
        if places is not None:
            workspace.address[slots], workspace.length[slots] = places.addresses, places.lengths
            workspace.base[slots] = places.bases
        geometry = streams.geometry
        scattered = 0 if geometry.pixels == 1 else 2 * geometry.row_nbytes
        scratch = np.empty(geometry.frame_nbytes + 8 + 32 * geometry.depth + scattered, np.uint8)
        others = references[1] if len(references) > 1 else _NO_REFERENCES
        damaged = read_rows(workspace.table, references[0], others, outs[0], outs[-1], scratch)
        if damaged >= 0:
            problem = "its patches reach beyond their frame, or beyond its end"
            raise PayloadError("frames", int(workspace.length[damaged]), problem)

    def _workspace(self, streams: Streams) -> _Workspace:
        workspace = self._workspaces.get(streams)
        if workspace is None:
            workspace = self._workspaces[streams] = _Workspace(streams)
        return workspace

    def __reduce__(self) -> tuple[Any, ...]:
        return create, ()  # whatever is installed where it is loaded


@hookimpl
def sb3_extra_buffers_frame_kernels() -> KernelsPlugin:
    return KernelsPlugin(protocol=1, factory=NumbaKernels, summary="Frames at memory speed, compiled by numba")
