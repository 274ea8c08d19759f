"""Writing observations, compiled: which frames are new, which chunks an observation reaches into."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from sb3_extra_buffers.frames.streams import PATTERNS, ZERO
from sb3_extra_buffers_codec_rle_numba.jit import copy, helper, kernel, load, store, trailing_zeros
from sb3_extra_buffers_codec_rle_numba.patches import (
    apply_patch,
    copy_frame,
    differ_at,
    differing_block,
    equal,
    gather_frame,
    is_blank,
    store_count,
    write_patch,
)
from sb3_extra_buffers_codec_rle_numba.table import (
    BACKS,
    BLANK,
    CELLS_PER_PLANE,
    CHUNK,
    CONTENT,
    CONTENT_NBYTES,
    COUNTS,
    DEPTH,
    FILLED,
    FIRST_NBYTES,
    FREE,
    GROUP,
    LAST,
    LAST_NUMBER,
    LAST_POSITION,
    LAST_ROW,
    MOST_BACK,
    NEWEST,
    NONE,
    NUMBERS,
    OPEN,
    OWN,
    PATTERN,
    PIXELS,
    PREVIOUS,
    REACH,
    REPEATED,
    ROOM,
    SCRATCH,
    SIZES,
    STEPS,
    STEPS_NBYTES,
    STREAMS,
    TAIL,
    TOTAL,
    USERS,
    WIDTH,
    Bytes,
    Cells,
    Numbers,
    S,
    Source,
    Table,
    U,
    byte,
    int32,
    int64,
)


@helper
def _last_frame(table: Any, stream: Any, index: Any, nbytes: Any) -> Any:
    """The address of a frame of the stream's last observation."""
    first = stream * table[DEPTH]
    return table[LAST] + (first + int64(table[LAST_ROW], first + index)) * nbytes


@helper
def is_last(table: Any, stream: Any, frames: Any, nbytes: Any) -> Any:
    """Whether an observation equals the last one of its stream."""
    depth = table[DEPTH]
    if S(int64(table[LAST_NUMBER], stream * depth)) < BLANK:
        return False
    for index in range(depth):
        if not equal(frames + U(index) * nbytes, _last_frame(table, stream, U(index), nbytes), nbytes):
            return False
    return True


@helper
def note_repetition(table: Any, stream: Any, own: Any) -> None:
    """Store a repeated observation again in time, before a heap evicts the chunks that it reaches into."""
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
    """The index of an equal frame of the stream's last observation; the depth if there is none."""
    depth, differs = table[DEPTH], U(0)
    for attempt in range(depth + U(2)):
        # First the one that a shift would bring here, then the one at the same index, then any.
        other = index + U(1) if attempt == U(0) else index if attempt == U(1) else U(attempt) - U(2)
        again = attempt > U(1) and (other == index or other == index + U(1))
        if other < depth and not again:
            number = S(int64(table[LAST_NUMBER], stream * depth + other))
            known = _last_frame(table, stream, other, nbytes)
            # A new frame mostly differs from all of them at the same place: where something moves.
            if number >= oldest and not differ_at(frame, known, differs, nbytes):
                differs = differing_block(frame, known, nbytes)
                if differs == nbytes:
                    return other
    return depth


@helper
def oldest_of(table: Any, stream: Any) -> Any:
    """The number of the oldest frame that an observation may refer to."""
    return max(S(int64(table[TOTAL], stream)) - S(table[MOST_BACK]) + S(2) * S(table[DEPTH]), S(0))


@helper
def brings_new(table: Any, stream: Any, frames: Any, nbytes: Any) -> Any:
    """Whether writing an observation would append a frame: one that is not found, or any if no pattern is left."""
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
    """Keep the frames of an observation as the last one; most are kept already."""
    depth, used = table[DEPTH], U(0)
    for index in range(depth):
        if int64(rows, U(index)) < depth:
            used |= U(1) << int64(rows, U(index))
    for index in range(depth):
        row = int64(rows, U(index))
        if row == depth:
            row = trailing_zeros(~used)
            used |= U(1) << row
            copy_frame(table[LAST] + (stream * depth + row) * nbytes, frames + U(index) * nbytes, nbytes)
        store(table[LAST_ROW] + (stream * depth + U(index)) * U(8), row)


@helper
def _change_users(table: Any, newest: Any, pattern: Any, change: Any) -> None:
    """Add a user to every chunk that an observation reaches into, or take one away."""
    if newest == U(0):
        return
    slot, covered = (newest - U(1)) // table[ROOM], (newest - U(1)) % table[ROOM]
    reach = byte(table[REACH], pattern)
    while True:
        users = S(int32(table[USERS], slot)) + change
        store(table[USERS] + slot * U(4), np.int32(users))
        before = int32(table[PREVIOUS], slot)
        free = int64(table[NUMBERS], U(1))
        # There are never more free slots than slots; loaded counts of users may be wrong.
        if users == S(0) and free < int64(table[NUMBERS], U(2)):
            store(table[FREE] + free * U(4), np.int32(slot))
            store(table[NUMBERS] + U(8), free + U(1))
        if reach <= covered:
            return
        slot = before
        covered += int32(table[SIZES], slot)


@helper
def _assign(table: Any, reference: Any, newest: Any, pattern: Any) -> None:
    """Let a reference stand for an observation, and no longer for its old one."""
    old, old_pattern = int32(table[NEWEST], reference), byte(table[PATTERN], reference)
    store(table[NEWEST] + reference * U(4), np.int32(newest))
    store(table[PATTERN] + reference, np.uint8(pattern))
    _change_users(table, newest, pattern, S(1))
    _change_users(table, old, old_pattern, S(-1))


@helper
def _append(table: Any, stream: Any, frame: Any, nbytes: Any, number: Any, position: Any) -> None:
    """Append a frame to the open chunk of its stream; write its number and position to these addresses."""
    slot, filled, tail = int32(table[OPEN], stream), table[FILLED] + stream * U(16), table[TAIL] + stream * nbytes
    place, total = int32(table[SIZES], slot), int64(table[TOTAL], stream)
    steps = table[STEPS] + stream * table[STEPS_NBYTES] + int64(filled, U(0))
    content = table[CONTENT] + stream * table[CONTENT_NBYTES] + int64(filled, U(1))
    steps_end, content_end = write_patch(tail, frame, nbytes, steps, content)
    count = (steps_end - steps) >> U(1)
    apply_patch(tail, nbytes, steps, count, content, content_end)
    store_count(table[COUNTS] + (stream * table[ROOM] + place) * table[WIDTH], table[WIDTH], count)
    if place == U(0):
        store(table[FIRST_NBYTES] + stream * U(8), steps_end - steps + content_end - content)
    store(filled, int64(filled, U(0)) + steps_end - steps)
    store(filled + U(8), int64(filled, U(1)) + content_end - content)
    store(table[SIZES] + slot * U(4), np.int32(place + U(1)))
    store(table[TOTAL] + stream * U(8), total + U(1))
    store(number, total)
    store(position, slot * table[ROOM] + place)


@helper
def _pattern(table: Any, numbers: Any, newest: Any) -> Any:
    """The index of a pattern, a new one if necessary; ``PATTERNS`` if there is no room for it."""
    depth, count = table[DEPTH], int64(table[NUMBERS], U(0))
    backs = numbers + U(24) * depth
    reach = U(0)
    for index in range(depth):
        number = S(int64(numbers, U(index)))
        back = U(ZERO)
        if number != BLANK:
            back = U(newest - number)
            reach = max(reach, back)
        store(backs + U(index), np.uint8(back))
    for pattern in range(count):
        if equal(backs, table[BACKS] + U(pattern) * depth, depth):
            return U(pattern)
    if count < U(PATTERNS):
        copy(table[BACKS] + count * depth, backs, depth)
        store(table[REACH] + count, np.uint8(reach))
        store(table[NUMBERS], count + U(1))
    return count


@helper
def _write(table: Any, stream: Any, reference: Any, frames: Any, scratch: Any) -> None:
    depth, nbytes, own = table[DEPTH], table[PIXELS] * table[GROUP], table[OWN] + stream
    if is_last(table, stream, frames, nbytes):
        _assign(table, reference, int32(table[NEWEST], own), byte(table[PATTERN], own))
        note_repetition(table, stream, own)
        return
    store(table[REPEATED] + stream * U(8), U(0))
    known_numbers = table[LAST_NUMBER] + stream * depth * U(8)
    known_positions = table[LAST_POSITION] + stream * depth * U(4)
    numbers, positions, rows = scratch, scratch + U(8) * depth, scratch + U(16) * depth
    oldest = oldest_of(table, stream)
    newest, where = BLANK, U(0)
    for index in range(depth):
        place = U(index) * U(8)
        frame = frames + U(index) * nbytes
        store(rows + place, depth)
        if is_blank(frame, nbytes):
            store(numbers + place, BLANK)
            store(positions + place, U(0))
            continue
        other = find(table, stream, frame, U(index), nbytes, oldest)
        if other < depth:
            store(numbers + place, int64(known_numbers, other))
            store(positions + place, int32(known_positions, other))
            store(rows + place, int64(table[LAST_ROW], stream * depth + other))
        elif (
            # One that was found in the last observation is not equal, because this one was not found there.
            U(index) > U(0)
            and load(rows + place - U(8), U(0)) == depth
            and S(load(numbers + place - U(8), U(0))) != BLANK
            and equal(frame, frame - nbytes, nbytes)
        ):
            for column in (numbers, positions, rows):
                copy(column + place, column + place - U(8), U(8))
        else:
            _append(table, stream, frame, nbytes, numbers + place, positions + place)
        if S(load(numbers + place, U(0))) > newest:
            newest, where = S(load(numbers + place, U(0))), load(positions + place, U(0)) + U(1)
    pattern = U(0)
    if newest != BLANK:
        pattern = _pattern(table, numbers, newest)
        if pattern == U(PATTERNS):  # no room for another pattern: stored as new frames, whose pattern is 0
            for index in range(depth):
                place = U(index) * U(8)
                _append(table, stream, frames + U(index) * nbytes, nbytes, numbers + place, positions + place)
                where = load(positions + place, U(0)) + U(1)
            pattern = U(0)
    _assign(table, reference, where, pattern)
    _assign(table, own, where, pattern)
    keep(table, stream, frames, rows, nbytes)
    copy(known_numbers, numbers, depth * U(8))
    for index in range(depth):
        store(known_positions + U(index) * U(4), np.int32(int64(positions, U(index))))


@kernel(types.int64(Source, Source, Bytes, Bytes))
def patch_nbytes(old: Any, new: Any, steps: Any, content: Any) -> Any:
    """The size of the patch from one frame to another, which is written to ``steps`` and ``content``."""
    begin, content_begin = U(steps.ctypes.data), U(content.ctypes.data)
    end, content_end = write_patch(U(old.ctypes.data), U(new.ctypes.data), U(len(new)), begin, content_begin)
    return S(end - begin + content_end - content_begin)


@kernel(types.int64(Table, Numbers, Cells, Cells, types.int64))
def write_rows(table: Any, references: Any, rows: Any, following: Any, begin: Any) -> Any:
    """Write observations until one has a new frame but its stream's chunk is complete; return its index."""
    depth, pixels, group = table[DEPTH], table[PIXELS], table[GROUP]
    nbytes, row_nbytes, count = pixels * group, depth * pixels * group, len(references)
    gathered = table[SCRATCH] + U(25) * depth + U(8)
    for index in range(begin, count + len(following)):
        if index < count:
            reference, frames = U(references[index]), U(rows.ctypes.data) + U(index) * row_nbytes
        else:
            reference = U(references[index - count]) + table[CELLS_PER_PLANE]
            frames = U(following.ctypes.data) + U(index - count) * row_nbytes
        stream = reference % table[STREAMS]
        if pixels != U(1):
            for number in range(depth):
                gather_frame(frames, gathered + U(number) * nbytes, U(number), pixels, depth, group)
            frames = gathered
        is_complete = int32(table[SIZES], int32(table[OPEN], stream)) >= table[CHUNK]
        if is_complete and brings_new(table, stream, frames, nbytes):
            return S(index)
        _write(table, stream, reference, frames, table[SCRATCH])
    return S(count + len(following))
