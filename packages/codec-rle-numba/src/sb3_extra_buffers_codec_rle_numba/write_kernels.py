"""Taking observations apart, compiled: which of their frames are new, and which chunks they reach into."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from sb3_extra_buffers.frames.streams import PATTERNS, ZERO
from sb3_extra_buffers_codec_rle_numba.jit import helper, kernel
from sb3_extra_buffers_codec_rle_numba.memory import copy, load, store
from sb3_extra_buffers_codec_rle_numba.patches import equal, gather_frame, is_blank
from sb3_extra_buffers_codec_rle_numba.table import (
    BACKS,
    BLANK,
    CELLS_PER_PLANE,
    CHUNK,
    DEPTH,
    FREE,
    GROUP,
    LAST,
    LAST_NUMBER,
    LAST_POSITION,
    MOST_BACK,
    NEWEST,
    NUMBERS,
    OPEN,
    OWN,
    PATTERN,
    PIXELS,
    PREVIOUS,
    REACH,
    SCRATCH,
    STAGED,
    STAGED_COUNT,
    STREAMS,
    TOTAL,
    USERS,
    Cells,
    Numbers,
    S,
    Table,
    U,
    byte,
    int32,
    int64,
)


@helper
def _change_users(table: Any, newest: Any, pattern: Any, change: Any) -> None:
    """Add a user to every chunk that an observation reaches into, or take one away."""
    if newest == U(0):
        return
    slot, offset = (newest - U(1)) // table[CHUNK], (newest - U(1)) % table[CHUNK]
    covered, reach = offset, byte(table[REACH], pattern)
    while True:
        users = S(int32(table[USERS], slot)) + change
        store(table[USERS] + slot * U(4), np.int32(users))
        before = int32(table[PREVIOUS], slot)
        if users == S(0):
            free = int64(table[NUMBERS], U(1))
            store(table[FREE] + free * U(4), np.int32(slot))
            store(table[NUMBERS] + U(8), free + U(1))
        if reach <= covered:
            return
        slot = before
        covered += table[CHUNK]


@helper
def _assign(table: Any, reference: Any, newest: Any, pattern: Any) -> None:
    """Let a reference stand for an observation, and no longer for what it stood for."""
    old, old_pattern = int32(table[NEWEST], reference), byte(table[PATTERN], reference)
    store(table[NEWEST] + reference * U(4), np.int32(newest))
    store(table[PATTERN] + reference, np.uint8(pattern))
    _change_users(table, newest, pattern, S(1))
    _change_users(table, old, old_pattern, S(-1))


@helper
def _append(table: Any, stream: Any, frame: Any, nbytes: Any, number: Any, position: Any) -> None:
    """Add a frame to a stream and write its number and position to these addresses."""
    chunk, depth = table[CHUNK], table[DEPTH]
    place, total = int64(table[STAGED_COUNT], stream), int64(table[TOTAL], stream)
    copy(table[STAGED] + (stream * (chunk + depth + depth) + place) * nbytes, frame, nbytes)
    store(table[STAGED_COUNT] + stream * U(8), place + U(1))
    store(table[TOTAL] + stream * U(8), total + U(1))
    slot = int32(table[OPEN], stream * U(2) + place // chunk)
    store(number, total)
    store(position, slot * chunk + place % chunk)


@helper
def _find(table: Any, stream: Any, frames: Any, index: Any, nbytes: Any, oldest: Any) -> Any:
    """Which frame of the stream's last observation this one is; the depth if it is none of them."""
    depth = table[DEPTH]
    last = table[LAST] + stream * depth * nbytes
    frame = frames + index * nbytes
    for attempt in range(depth + U(2)):
        # First the one that a shift would bring here, then the one that was here, then any.
        other = index + U(1) if attempt == U(0) else index if attempt == U(1) else U(attempt) - U(2)
        again = attempt > U(1) and (other == index or other == index + U(1))
        if other < depth and not again:
            number = S(int64(table[LAST_NUMBER], stream * depth + other))
            if number >= oldest and equal(frame, last + other * nbytes, nbytes):
                return other
    return depth


@helper
def _pattern(table: Any, numbers: Any, newest: Any) -> Any:
    """The pattern of an observation, a new one if need be; ``PATTERNS`` if there is no room for it."""
    depth, count = table[DEPTH], int64(table[NUMBERS], U(0))
    backs = table[SCRATCH] + depth * table[PIXELS] * table[GROUP] + U(16) * depth
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
def _write(table: Any, stream: Any, reference: Any, frames: Any) -> None:
    depth, nbytes = table[DEPTH], table[PIXELS] * table[GROUP]
    last, own = table[LAST] + stream * depth * nbytes, table[OWN] + stream
    known_numbers = table[LAST_NUMBER] + stream * depth * U(8)
    known_positions = table[LAST_POSITION] + stream * depth * U(4)
    if S(load(known_numbers, U(0))) >= BLANK and equal(frames, last, depth * nbytes):
        _assign(table, reference, int32(table[NEWEST], own), byte(table[PATTERN], own))
        return
    numbers = table[SCRATCH] + depth * nbytes
    positions = numbers + U(8) * depth
    oldest = max(S(int64(table[TOTAL], stream)) - S(table[MOST_BACK]) + S(2) * S(depth), S(0))
    newest, where = BLANK, U(0)
    for index in range(depth):
        place = U(index) * U(8)
        frame = frames + U(index) * nbytes
        if is_blank(frame, nbytes):
            store(numbers + place, BLANK)
            store(positions + place, U(0))
            continue
        other = _find(table, stream, frames, U(index), nbytes, oldest)
        if other < depth:
            store(numbers + place, int64(known_numbers, other))
            store(positions + place, int32(known_positions, other))
        elif (
            U(index) > U(0) and S(load(numbers + place - U(8), U(0))) != BLANK and equal(frame, frame - nbytes, nbytes)
        ):
            copy(numbers + place, numbers + place - U(8), U(8))
            copy(positions + place, positions + place - U(8), U(8))
        else:
            _append(table, stream, frame, nbytes, numbers + place, positions + place)
        if S(load(numbers + place, U(0))) > newest:
            newest, where = S(load(numbers + place, U(0))), load(positions + place, U(0)) + U(1)
    pattern = U(0)
    if newest != BLANK:
        pattern = _pattern(table, numbers, newest)
        if pattern == U(PATTERNS):  # no room for another pattern: as new frames, there is always one for it
            for index in range(depth):
                place = U(index) * U(8)
                _append(table, stream, frames + U(index) * nbytes, nbytes, numbers + place, positions + place)
                where = load(positions + place, U(0)) + U(1)
            pattern = U(0)
    _assign(table, reference, where, pattern)
    _assign(table, own, where, pattern)
    copy(last, frames, depth * nbytes)
    copy(known_numbers, numbers, depth * U(8))
    for index in range(depth):
        store(known_positions + U(index) * U(4), np.int32(int64(positions, U(index))))


@kernel(types.int64(Table, Numbers, Cells, Cells, types.int64))
def write_rows(table: Any, references: Any, rows: Any, following: Any, begin: Any) -> Any:
    """Take observations apart until one belongs to a stream whose chunk is complete; return its number."""
    depth, pixels, group = table[DEPTH], table[PIXELS], table[GROUP]
    nbytes, scratch, count = pixels * group, table[SCRATCH], len(references)
    for index in range(begin, count + len(following)):
        if index < count:
            reference, frames = U(references[index]), U(rows.ctypes.data) + U(index) * depth * nbytes
        else:
            reference = U(references[index - count]) + table[CELLS_PER_PLANE]
            frames = U(following.ctypes.data) + U(index - count) * depth * nbytes
        stream = reference % table[STREAMS]
        if int64(table[STAGED_COUNT], stream) >= table[CHUNK]:
            return S(index)
        if pixels != U(1):
            for number in range(depth):
                gather_frame(frames, scratch + U(number) * nbytes, U(number), pixels, depth, group)
            frames = scratch
        _write(table, stream, reference, frames)
    return S(count + len(following))
