"""The numbers of core's ``Streams`` as compiled kernels see them: one table of plain numbers and addresses.

Each array that is handed to a kernel costs more than most of what is done with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from sb3_extra_buffers_codec_rle_numba.jit import helper
from sb3_extra_buffers_codec_rle_numba.memory import load

S, U = np.int64, np.uint64
#: The number of a frame of zeros, which is in no stream.
BLANK = S(-1)
#: That of a frame that is not to be compared with.
NONE = S(-2)
#: The table: plain numbers first, then addresses.
(
    CHUNK,
    DEPTH,
    PIXELS,
    GROUP,
    STREAMS,
    CELLS_PER_PLANE,
    MOST_BACK,
    OWN,
    ROOM,
    WIDTH,
    NEWEST,
    PATTERN,
    BACKS,
    REACH,
    LAST,
    LAST_ROW,
    LAST_NUMBER,
    LAST_POSITION,
    TOTAL,
    REPEATED,
    OPEN,
    COUNTS,
    STEPS,
    STEPS_NBYTES,
    CONTENT,
    CONTENT_NBYTES,
    FILLED,
    FIRST_NBYTES,
    BASE,
    TAIL,
    PREVIOUS,
    SIZES,
    USERS,
    FREE,
    NUMBERS,
    MARK,
    PLACE,
    SCRATCH,
) = range(38)

Table = types.Array(types.uint64, 1, "C", readonly=True)
Numbers = types.Array(types.int64, 1, "C", readonly=True)
Rows = types.Array(types.uint8, 2, "C")
Cells = types.Array(types.uint8, 2, "C", readonly=True)
Bytes = types.Array(types.uint8, 1, "C")
Source = types.Array(types.uint8, 1, "C", readonly=True)


@helper
def int32(address: Any, index: Any) -> Any:
    return U(load(address + index * U(4), np.uint32(0)))


@helper
def int64(address: Any, index: Any) -> Any:
    return load(address + index * U(8), U(0))


@helper
def byte(address: Any, index: Any) -> Any:
    return U(load(address + index, np.uint8(0)))
