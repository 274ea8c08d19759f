"""Packing a chunk, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from sb3_extra_buffers_codec_rle_numba.jit import kernel
from sb3_extra_buffers_codec_rle_numba.memory import copy, store
from sb3_extra_buffers_codec_rle_numba.patches import PADDING, fill_zero, write_patch
from sb3_extra_buffers_codec_rle_numba.table import Bytes, Cells, S, Source, U


@kernel(
    types.UniTuple(types.int64, 2)(  # type: ignore[no-untyped-call]
        Cells, Source, types.uint64, Bytes, Bytes
    )
)
def pack_chunk(frames: Any, base: Any, width: Any, out: Any, scratch: Any) -> Any:
    """Write frames as patches; return the length of all, and that of the first patch."""
    count, nbytes = U(frames.shape[0]), U(frames.shape[1])
    begin = U(out.ctypes.data)
    steps = begin + count * width
    content = U(scratch.ctypes.data)
    old, new, first = U(base.ctypes.data), U(frames.ctypes.data), U(0)
    for index in range(count):
        before = steps
        before_content = content
        steps, content = write_patch(old, new, nbytes, steps, content)
        if width == U(2):
            store(begin + U(index) * width, np.uint16((steps - before) >> U(1)))
        else:
            store(begin + U(index) * width, np.uint32((steps - before) >> U(1)))
        if U(index) == U(0):
            first = steps - before + content - before_content
        old = new
        new += nbytes
    size = content - U(scratch.ctypes.data)
    copy(steps, U(scratch.ctypes.data), size)
    steps += size
    fill_zero(steps, PADDING)
    return S(steps + PADDING - begin), S(first)
