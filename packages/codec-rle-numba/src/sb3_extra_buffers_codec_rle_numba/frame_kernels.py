"""``numba``: compiled frame kernels, with the bytes and the numbers of the reference in numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numpy import ndarray
from numpy.typing import NDArray

from sb3_extra_buffers.errors import PayloadError
from sb3_extra_buffers.frames import ChunkSource, KernelsPlugin, Known, Streams, create, hookimpl
from sb3_extra_buffers.frames.packing import PADDING, worst_steps_nbytes
from sb3_extra_buffers.memory import Bytes, Indices
from sb3_extra_buffers_codec_rle_numba.jit import LANES, deinterleave, kernel, load, store
from sb3_extra_buffers_codec_rle_numba.read_kernels import are_shifts, plan_read, read_rows
from sb3_extra_buffers_codec_rle_numba.table import U, Workspace
from sb3_extra_buffers_codec_rle_numba.write_kernels import patch_nbytes, write_rows

_NO_ROWS = np.empty((0, 1), np.uint8)
_NOTHING_KNOWN = Known(np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.uint64))
_LANES = U(LANES)
_MAX_STAMP = 2**32 - 1
#: Numbers of channels that are rearranged here. One channel is contiguous already; more are rare.
CHANNELS = (2, 3, 4)
Pixels = types.Array(types.uint8, 4, "C", readonly=True)
Planes = types.Array(types.uint8, 4, "C")


@kernel(types.void(Pixels, Planes))
def split_channels(images: Any, out: Any) -> None:
    """Write images of the shape ``(n, height, width, channels)`` to ``(n, channels, height, width)``."""
    count, height, width, depth = images.shape
    channels, pixels = U(depth), U(height * width)
    for image in range(count):
        offset = U(image) * pixels * channels
        source, target = U(images.ctypes.data) + offset, U(out.ctypes.data) + offset
        pixel = U(0)
        while pixel + _LANES <= pixels:
            if depth == 4:
                deinterleave(source + pixel * channels, target + pixel, pixels, 4)
            elif depth == 3:
                deinterleave(source + pixel * channels, target + pixel, pixels, 3)
            else:
                deinterleave(source + pixel * channels, target + pixel, pixels, 2)
            pixel += _LANES
        while pixel < pixels:
            for channel in range(channels):
                byte = load(source + pixel * channels + U(channel), np.uint8(0))
                store(target + U(channel) * pixels + pixel, byte)
            pixel += U(1)


def next_stamp(workspace: Workspace) -> int:
    """A number that no slot is marked with."""
    if workspace.stamp == _MAX_STAMP:
        workspace.mark.fill(0)
        workspace.stamp = 0
    workspace.stamp += 1
    return workspace.stamp


class NumbaKernels:
    """One compiled call for each batch."""

    name = "numba"

    def write(
        self, streams: Streams, references: Indices, rows: Bytes, begin: int, next_rows: Bytes | None = None, /
    ) -> int:
        workspace = streams.workspace
        if not isinstance(workspace, Workspace):
            workspace = self._workspace(streams)
        found: int = write_rows(workspace.table, references, rows, _NO_ROWS if next_rows is None else next_rows, begin)
        return found

    def measure(self, old: Bytes, new: Bytes, /) -> int:
        steps, content = np.empty(worst_steps_nbytes(len(new)), np.uint8), np.empty(len(new) + PADDING, np.uint8)
        return int(patch_nbytes(old, new, steps, content))

    def read(
        self, streams: Streams, source: ChunkSource, references: Indices, out: Bytes, next_out: Bytes | None = None, /
    ) -> None:
        # Kernels run without the interpreter lock, and the plan of a batch is in the workspace until it is read.
        workspace = self._workspace(streams)
        with workspace.lock:
            self._read(workspace, source, references, out, next_out, both=next_out is not None)

    def read_overlapping(self, streams: Streams, source: ChunkSource, references: Indices, out: Bytes, /) -> bool:
        workspace = self._workspace(streams)
        if not are_shifts(workspace.table, references):
            return False
        with workspace.lock:
            self._read(workspace, source, references, out, None, both=True)
        return True

    def contiguous(self, array: NDArray[Any], /) -> NDArray[Any]:
        # Observations of VecTransposeImage. Other arrays that are not contiguous are rare and left to numpy.
        if type(array) is ndarray and array.ndim == 4 and array.shape[1] in CHANNELS and array.dtype == np.uint8:
            pixels = array.transpose(0, 2, 3, 1)
            if pixels.flags.c_contiguous:
                out = np.empty(array.shape, np.uint8)
                split_channels(pixels, out)
                return out
        return np.ascontiguousarray(array)

    def _read(
        self,
        workspace: Workspace,
        source: ChunkSource,
        references: Indices,
        out: Bytes,
        next_out: Bytes | None,
        *,
        both: bool,
    ) -> None:
        known = source.known() or _NOTHING_KNOWN
        # For each chunk of the batch: slot, address, length, address of the reference frame.
        plan = np.empty((4, (1 + both) * len(references) * workspace.most_chunks), np.int64)
        count = plan_read(workspace.table, references, both, next_stamp(workspace), *known, plan)
        places = None
        if count < 0:
            count = -count
            places = source.place(plan[0, :count])  # kept alive: it may hold the memory that is read
            plan[1, :count], plan[2, :count], plan[3, :count] = places.addresses, places.lengths, places.bases
        more = _NO_ROWS if next_out is None else next_out
        scratch = np.empty(workspace.scratch_nbytes, np.uint8)
        damaged = read_rows(workspace.table, references, plan, out, more, scratch)
        if damaged >= 0:
            problem = "its patches reach beyond their frame, or beyond its end"
            raise PayloadError("frames", int(plan[2, damaged]), problem)

    def _workspace(self, streams: Streams) -> Workspace:
        workspace = streams.workspace
        if not isinstance(workspace, Workspace):
            workspace = streams.workspace = Workspace(streams)
        return workspace

    def __reduce__(self) -> tuple[Any, ...]:
        return create, ()  # the kernels that are installed where it is loaded


@hookimpl
def sb3_extra_buffers_frame_kernels() -> KernelsPlugin:
    return KernelsPlugin(protocol=1, factory=NumbaKernels, summary="Frames at memory speed, compiled by numba")
