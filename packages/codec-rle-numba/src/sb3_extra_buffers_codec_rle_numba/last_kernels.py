"""What an observation has in common with the last one of its stream, compiled."""

from __future__ import annotations

from typing import Any

from sb3_extra_buffers.frames.streams import PATTERNS
from sb3_extra_buffers_codec_rle_numba.jit import helper
from sb3_extra_buffers_codec_rle_numba.memory import copy, store, trailing_zeros
from sb3_extra_buffers_codec_rle_numba.patches import equal, is_blank
from sb3_extra_buffers_codec_rle_numba.table import (
    BLANK,
    CHUNK,
    DEPTH,
    LAST,
    LAST_NUMBER,
    LAST_ROW,
    MOST_BACK,
    NEWEST,
    NONE,
    NUMBERS,
    OPEN,
    PATTERN,
    REACH,
    REPEATED,
    ROOM,
    TOTAL,
    S,
    U,
    byte,
    int32,
    int64,
)


@helper
def _last_frame(table: Any, stream: Any, index: Any, nbytes: Any) -> Any:
    """Where a frame of the stream's last observation is."""
    first = stream * table[DEPTH]
    return table[LAST] + (first + int64(table[LAST_ROW], first + index)) * nbytes


@helper
def is_last(table: Any, stream: Any, frames: Any, nbytes: Any) -> Any:
    """Whether an observation is the last one again."""
    depth = table[DEPTH]
    if S(int64(table[LAST_NUMBER], stream * depth)) < BLANK:
        return False
    for index in range(depth):
        if not equal(frames + U(index) * nbytes, _last_frame(table, stream, U(index), nbytes), nbytes):
            return False
    return True


@helper
def note_repetition(table: Any, stream: Any, own: Any) -> None:
    """Let an observation that stands still be stored again in time, before a heap drops the chunks that it reaches."""
    newest = int32(table[NEWEST], own)
    slot, offset = (newest - U(1)) // table[ROOM], (newest - U(1)) % table[ROOM]
    is_inside = slot == int32(table[OPEN], stream) and byte(table[REACH], byte(table[PATTERN], own)) <= offset
    if newest == U(0) or is_inside:
        return
    repeated = int64(table[REPEATED], stream) + U(1)
    if repeated == table[CHUNK]:
        repeated = U(0)
        for index in range(table[DEPTH]):
            store(table[LAST_NUMBER] + (stream * table[DEPTH] + U(index)) * U(8), NONE)
    store(table[REPEATED] + stream * U(8), repeated)


@helper
def find(table: Any, stream: Any, frame: Any, index: Any, nbytes: Any, oldest: Any) -> Any:
    """Which frame of the stream's last observation this one is; the depth if it is none of them."""
    depth = table[DEPTH]
    for attempt in range(depth + U(2)):
        # First the one that a shift would bring here, then the one that was here, then any.
        other = index + U(1) if attempt == U(0) else index if attempt == U(1) else U(attempt) - U(2)
        again = attempt > U(1) and (other == index or other == index + U(1))
        if other < depth and not again:
            number = S(int64(table[LAST_NUMBER], stream * depth + other))
            if number >= oldest and equal(frame, _last_frame(table, stream, other, nbytes), nbytes):
                return other
    return depth


@helper
def oldest_of(table: Any, stream: Any) -> Any:
    """The number of the oldest frame that an observation may still be made of."""
    return max(S(int64(table[TOTAL], stream)) - S(table[MOST_BACK]) + S(2) * S(table[DEPTH]), S(0))


@helper
def brings_new(table: Any, stream: Any, frames: Any, nbytes: Any) -> Any:
    """Whether an observation has a frame that is nowhere, or would be stored again for want of a pattern."""
    if int64(table[NUMBERS], U(0)) == U(PATTERNS):
        return True
    oldest, before_is_blank = oldest_of(table, stream), True
    for index in range(table[DEPTH]):
        frame = frames + U(index) * nbytes
        blank = is_blank(frame, nbytes)
        is_known = blank or find(table, stream, frame, U(index), nbytes, oldest) < table[DEPTH]
        if not is_known and (before_is_blank or not equal(frame, frame - nbytes, nbytes)):
            return True
        before_is_blank = blank
    return False


@helper
def keep(table: Any, stream: Any, frames: Any, rows: Any, nbytes: Any) -> None:
    """Keep the frames of an observation as the last one; most of them are kept already."""
    depth, used = table[DEPTH], U(0)
    for index in range(depth):
        if int64(rows, U(index)) < depth:
            used |= U(1) << int64(rows, U(index))
    for index in range(depth):
        row = int64(rows, U(index))
        if row == depth:
            row = trailing_zeros(~used)
            used |= U(1) << row
            copy(table[LAST] + (stream * depth + row) * nbytes, frames + U(index) * nbytes, nbytes)
        store(table[LAST_ROW] + (stream * depth + U(index)) * U(8), row)
