"""``Streams`` as compiled kernels see them: one table of numbers and addresses.

Passing an array to a kernel costs more than most of the work on it.
"""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from sb3_extra_buffers.frames import Streams
from sb3_extra_buffers.frames.streams import MAX_BACK
from sb3_extra_buffers.memory import untouched
from sb3_extra_buffers_codec_rle_numba.jit import helper, load

S, U = np.int64, np.uint64
#: The number of a frame of zeros, which is in no stream.
BLANK = S(-1)
#: The number of a frame that nothing is compared with.
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


class Workspace:
    """The addresses of one :class:`Streams`, and memory for intermediate results."""

    def __init__(self, streams: Streams) -> None:
        geometry, slots = streams.geometry, streams.slots
        #: For each slot, the number of the batch that last read its chunk.
        self.mark = untouched(slots, np.uint32)
        #: The number of the last batch.
        self.stamp = 0
        self.lock = Lock()
        #: The index of a chunk in the plan of a batch, by slot.
        self.place = untouched(slots, np.uint32)
        #: The largest number of chunks that an observation can reach into.
        self.most_chunks = MAX_BACK // streams.chunk + 2
        scattered = 0 if geometry.pixels == 1 else 2 * geometry.row_nbytes
        # The frames of an observation and the next one, and room for both if frames are interleaved.
        self.scratch_nbytes = 32 * geometry.depth + scattered
        # An observation if its frames are interleaved; numbers, positions, rows and distances of its frames.
        self._scratch = np.zeros((geometry.row_nbytes if scattered else 0) + 25 * geometry.depth + 8, np.uint8)
        own = len(streams.newest) - streams.streams
        filling = streams.filling
        # In the order of the table; of an array, the address.
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
