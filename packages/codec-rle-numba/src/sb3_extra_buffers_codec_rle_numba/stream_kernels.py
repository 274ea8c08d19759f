"""What core's ``Streams`` do for every observation, compiled: take it apart, find its chunks, put it together.

The numbers of ``Streams`` are handed over as one table of addresses: each array would cost a call more than its work.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from sb3_extra_buffers.frames.streams import MAX_BACK, PATTERNS, ZERO
from sb3_extra_buffers_codec_rle_numba.jit import helper, kernel
from sb3_extra_buffers_codec_rle_numba.memory import copy, load, store
from sb3_extra_buffers_codec_rle_numba.patches import (
    apply_patch,
    equal,
    gather_frame,
    is_blank,
    load_count,
    scatter_frames,
    write_patch,
)

S, U = np.int64, np.uint64
_PADDING = U(7)
_BLANK = S(-1)
#: The table: plain numbers first, then addresses.
(
    _CHUNK,
    _DEPTH,
    _PIXELS,
    _GROUP,
    _STREAMS,
    _CELLS_PER_PLANE,
    _OWN,
    _NEWEST,
    _PATTERN,
    _BACKS,
    _REACH,
    _LAST,
    _LAST_NUMBER,
    _LAST_POSITION,
    _STAGED,
    _STAGED_COUNT,
    _TOTAL,
    _OPEN,
    _PREVIOUS,
    _USERS,
    _FREE,
    _NUMBERS,
    _MARK,
    _PLACE,
    _SCRATCH,
) = range(25)
_TABLE = types.Array(types.uint64, 1, "C", readonly=True)
_INDICES = types.Array(types.int64, 1, "C", readonly=True)
_ROWS = types.Array(types.uint8, 2, "C")
_CELLS = types.Array(types.uint8, 2, "C", readonly=True)
_BYTES = types.Array(types.uint8, 1, "C")
_SOURCE = types.Array(types.uint8, 1, "C", readonly=True)


@helper
def _int32(address: Any, index: Any) -> Any:
    return U(load(address + index * U(4), np.uint32(0)))


@helper
def _int64(address: Any, index: Any) -> Any:
    return load(address + index * U(8), U(0))


@helper
def _byte(address: Any, index: Any) -> Any:
    return U(load(address + index, np.uint8(0)))


@helper
def _change_users(table: Any, newest: Any, pattern: Any, change: Any) -> None:
    """Add a user to every chunk that an observation reaches into, or take one away."""
    if newest == U(0):
        return
    slot, offset = (newest - U(1)) // table[_CHUNK], (newest - U(1)) % table[_CHUNK]
    covered, reach = offset, _byte(table[_REACH], pattern)
    while True:
        users = S(_int32(table[_USERS], slot)) + change
        store(table[_USERS] + slot * U(4), np.int32(users))
        before = _int32(table[_PREVIOUS], slot)
        if users == S(0):
            free = _int64(table[_NUMBERS], U(1))
            store(table[_FREE] + free * U(4), np.int32(slot))
            store(table[_NUMBERS] + U(8), free + U(1))
        if reach <= covered:
            return
        slot = before
        covered += table[_CHUNK]


@helper
def _assign(table: Any, reference: Any, newest: Any, pattern: Any) -> None:
    """Let a reference stand for an observation, and no longer for what it stood for."""
    old, old_pattern = _int32(table[_NEWEST], reference), _byte(table[_PATTERN], reference)
    store(table[_NEWEST] + reference * U(4), np.int32(newest))
    store(table[_PATTERN] + reference, np.uint8(pattern))
    _change_users(table, newest, pattern, S(1))
    _change_users(table, old, old_pattern, S(-1))


@helper
def _append(table: Any, stream: Any, frame: Any, nbytes: Any, number: Any, position: Any) -> None:
    """Add a frame to a stream and write its number and position to these addresses."""
    chunk, depth = table[_CHUNK], table[_DEPTH]
    place, total = _int64(table[_STAGED_COUNT], stream), _int64(table[_TOTAL], stream)
    copy(table[_STAGED] + (stream * (chunk + depth + depth) + place) * nbytes, frame, nbytes)
    store(table[_STAGED_COUNT] + stream * U(8), place + U(1))
    store(table[_TOTAL] + stream * U(8), total + U(1))
    slot = _int32(table[_OPEN], stream * U(2) + place // chunk)
    store(number, total)
    store(position, slot * chunk + place % chunk)


@helper
def _find(table: Any, stream: Any, frames: Any, index: Any, nbytes: Any, oldest: Any) -> Any:
    """Which frame of the stream's last observation this one is; the depth if it is none of them."""
    depth = table[_DEPTH]
    last = table[_LAST] + stream * depth * nbytes
    frame = frames + index * nbytes
    for attempt in range(depth + U(2)):
        # First the one that a shift would bring here, then the one that was here, then any.
        other = index + U(1) if attempt == U(0) else index if attempt == U(1) else U(attempt) - U(2)
        again = attempt > U(1) and (other == index or other == index + U(1))
        if other < depth and not again:
            number = S(_int64(table[_LAST_NUMBER], stream * depth + other))
            if number >= oldest and equal(frame, last + other * nbytes, nbytes):
                return other
    return depth


@helper
def _pattern(table: Any, numbers: Any, newest: Any) -> Any:
    """The pattern of an observation, a new one if need be; ``PATTERNS`` if there is no room for it."""
    depth, count = table[_DEPTH], _int64(table[_NUMBERS], U(0))
    backs = table[_SCRATCH] + depth * table[_PIXELS] * table[_GROUP] + U(16) * depth
    reach = U(0)
    for index in range(depth):
        number = S(_int64(numbers, U(index)))
        back = U(ZERO)
        if number != _BLANK:
            back = U(newest - number)
            reach = max(reach, back)
        store(backs + U(index), np.uint8(back))
    for pattern in range(count):
        if equal(backs, table[_BACKS] + U(pattern) * depth, depth):
            return U(pattern)
    if count < U(PATTERNS):
        copy(table[_BACKS] + count * depth, backs, depth)
        store(table[_REACH] + count, np.uint8(reach))
        store(table[_NUMBERS], count + U(1))
    return count


@helper
def _write(table: Any, stream: Any, reference: Any, frames: Any) -> None:
    depth, nbytes = table[_DEPTH], table[_PIXELS] * table[_GROUP]
    last, own = table[_LAST] + stream * depth * nbytes, table[_OWN] + stream
    known_numbers = table[_LAST_NUMBER] + stream * depth * U(8)
    known_positions = table[_LAST_POSITION] + stream * depth * U(4)
    if S(load(known_numbers, U(0))) >= _BLANK and equal(frames, last, depth * nbytes):
        _assign(table, reference, _int32(table[_NEWEST], own), _byte(table[_PATTERN], own))
        return
    numbers = table[_SCRATCH] + depth * nbytes
    positions = numbers + U(8) * depth
    oldest = max(S(_int64(table[_TOTAL], stream)) - S(MAX_BACK) + S(2) * S(depth), S(0))
    newest, where = _BLANK, U(0)
    for index in range(depth):
        place = U(index) * U(8)
        frame = frames + U(index) * nbytes
        if is_blank(frame, nbytes):
            store(numbers + place, _BLANK)
            store(positions + place, U(0))
            continue
        other = _find(table, stream, frames, U(index), nbytes, oldest)
        if other < depth:
            store(numbers + place, _int64(known_numbers, other))
            store(positions + place, _int32(known_positions, other))
        elif (
            U(index) > U(0) and S(load(numbers + place - U(8), U(0))) != _BLANK and equal(frame, frame - nbytes, nbytes)
        ):
            copy(numbers + place, numbers + place - U(8), U(8))
            copy(positions + place, positions + place - U(8), U(8))
        else:
            _append(table, stream, frame, nbytes, numbers + place, positions + place)
        if S(load(numbers + place, U(0))) > newest:
            newest, where = S(load(numbers + place, U(0))), load(positions + place, U(0)) + U(1)
    pattern = U(0)
    if newest != _BLANK:
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
        store(known_positions + U(index) * U(4), np.int32(_int64(positions, U(index))))


@kernel(types.int64(_TABLE, _INDICES, _CELLS, _CELLS, types.int64))
def write_rows(table: Any, references: Any, rows: Any, following: Any, begin: Any) -> Any:
    """Take observations apart until one belongs to a stream whose chunk is complete; return its number."""
    depth, pixels, group = table[_DEPTH], table[_PIXELS], table[_GROUP]
    nbytes, scratch, count = pixels * group, table[_SCRATCH], len(references)
    for index in range(begin, count + len(following)):
        if index < count:
            reference, frames = U(references[index]), U(rows.ctypes.data) + U(index) * depth * nbytes
        else:
            reference = U(references[index - count]) + table[_CELLS_PER_PLANE]
            frames = U(following.ctypes.data) + U(index - count) * depth * nbytes
        stream = reference % table[_STREAMS]
        if _int64(table[_STAGED_COUNT], stream) >= table[_CHUNK]:
            return S(index)
        if pixels != U(1):
            for number in range(depth):
                gather_frame(frames, scratch + U(number) * nbytes, U(number), pixels, depth, group)
            frames = scratch
        _write(table, stream, reference, frames)
    return S(count + len(following))


@kernel(types.int64(_TABLE, _INDICES, types.boolean, types.uint64, types.int64[::1]))
def plan_read(table: Any, references: Any, both: Any, stamp: Any, slots: Any) -> Any:
    """Note the slots of all complete chunks that observations reach into, each once; return how many there are."""
    count, number = S(0), len(references)
    for index in range(2 * number if both else number):
        reference = U(references[index]) if index < number else U(references[index - number]) + table[_CELLS_PER_PLANE]
        newest = _int32(table[_NEWEST], reference)
        if newest == U(0):
            continue
        stream = reference % table[_STREAMS]
        slot, covered = (newest - U(1)) // table[_CHUNK], (newest - U(1)) % table[_CHUNK]
        reach = _byte(table[_REACH], _byte(table[_PATTERN], reference))
        while True:
            is_open = slot == _int32(table[_OPEN], stream * U(2)) or slot == _int32(table[_OPEN], stream * U(2) + U(1))
            if not is_open and _int32(table[_MARK], slot) != stamp:
                store(table[_MARK] + slot * U(4), np.uint32(stamp))
                store(table[_PLACE] + slot * U(4), np.uint32(count))
                slots[count] = S(slot)
                count += S(1)
            if reach <= covered:
                break
            slot = _int32(table[_PREVIOUS], slot)
            covered += table[_CHUNK]
    return count


@helper
def _fill_zero(target: Any, nbytes: Any) -> None:
    while nbytes >= U(8):
        store(target, U(0))
        target += U(8)
        nbytes -= U(8)
    while nbytes:
        store(target, np.uint8(0))
        target += U(1)
        nbytes -= U(1)


@helper
def _note_needs(table: Any, reference: Any, target: Any, needs: Any, count: Any) -> Any:
    """Note which frames an observation needs and where they go, ordered by chunk and offset; return how many."""
    depth, nbytes, chunk = table[_DEPTH], table[_PIXELS] * table[_GROUP], table[_CHUNK]
    newest = _int32(table[_NEWEST], reference)
    if newest == U(0):
        _fill_zero(target, depth * nbytes)
        return count
    backs = table[_BACKS] + _byte(table[_PATTERN], reference) * depth
    for index in range(depth):
        back = _byte(backs, U(index))
        if back == U(ZERO):
            _fill_zero(target + U(index) * nbytes, nbytes)
            continue
        slot, offset = (newest - U(1)) // chunk, (newest - U(1)) % chunk
        while back > offset:
            slot = _int32(table[_PREVIOUS], slot)
            offset += chunk
        key = slot * chunk + offset - back
        place = count
        while place and _int64(needs, (place - U(1)) * U(2)) > key:
            copy(needs + place * U(16), needs + (place - U(1)) * U(16), U(16))
            place -= U(1)
        store(needs + place * U(16), key)
        store(needs + place * U(16) + U(8), target + U(index) * nbytes)
        count += U(1)
    return count


@helper
def _supply(
    table: Any, stream: Any, needs: Any, count: Any, frame: Any, addresses: Any, lengths: Any, bases: Any
) -> Any:
    """Write every frame that is needed to where it is needed; return the place of a damaged chunk, or -1."""
    nbytes, chunk = table[_PIXELS] * table[_GROUP], table[_CHUNK]
    width = U(2) if nbytes <= U(1 << 17) else U(4)
    staged = table[_STAGED] + stream * (chunk + table[_DEPTH] + table[_DEPTH]) * nbytes
    need = U(0)
    while need < count:
        slot = _int64(needs, need * U(2)) // chunk
        first = slot * chunk
        is_open = False
        for number in range(U(2)):
            if slot == _int32(table[_OPEN], stream * U(2) + U(number)):
                is_open = True
                while need < count and _int64(needs, need * U(2)) - first < chunk:
                    offset = _int64(needs, need * U(2)) - first + U(number) * chunk
                    copy(_int64(needs, need * U(2) + U(1)), staged + offset * nbytes, nbytes)
                    need += U(1)
        if is_open:
            continue
        place = _int32(table[_PLACE], slot)
        counts, length = addresses[place], U(lengths[place])
        steps = counts + chunk * width
        if length < chunk * width + _PADDING:
            return S(place)
        limit = counts + length - _PADDING
        content = steps
        for offset in range(chunk):
            content += load_count(counts + U(offset) * width, width) * U(2)
        if content > limit:
            return S(place)
        copy(frame, bases[place], nbytes)
        for offset in range(chunk):
            size = load_count(counts + U(offset) * width, width)
            content = apply_patch(frame, nbytes, steps, size, content, limit)
            if content == U(0):
                return S(place)
            steps += size * U(2)
            while need < count and _int64(needs, need * U(2)) == first + U(offset):
                copy(_int64(needs, need * U(2) + U(1)), frame, nbytes)
                need += U(1)
            if need == count or _int64(needs, need * U(2)) - first >= chunk:
                break
    return S(-1)


@kernel(types.int64(_TABLE, _INDICES, _TABLE, _INDICES, _TABLE, _ROWS, _ROWS, _BYTES))
def read_rows(
    table: Any, references: Any, addresses: Any, lengths: Any, bases: Any, rows: Any, following: Any, scratch: Any
) -> Any:
    """Put observations together, and those of the following plane; return the place of a damaged chunk, or -1."""
    depth, pixels, group = table[_DEPTH], table[_PIXELS], table[_GROUP]
    nbytes = pixels * group
    row_nbytes = depth * nbytes
    frame = U(scratch.ctypes.data)
    needs = frame + nbytes + U(8)
    planes = needs + U(32) * depth
    for index in range(len(references)):
        row, next_row = U(rows.ctypes.data) + U(index) * row_nbytes, U(following.ctypes.data) + U(index) * row_nbytes
        reference = U(references[index])
        stream = reference % table[_STREAMS]
        target = row if pixels == U(1) else planes
        count = _note_needs(table, reference, target, needs, U(0))
        if len(following):
            next_target = next_row if pixels == U(1) else planes + row_nbytes
            count = _note_needs(table, reference + table[_CELLS_PER_PLANE], next_target, needs, count)
        damaged = _supply(table, stream, needs, count, frame, addresses, lengths, bases)
        if damaged >= S(0):
            return damaged
        if pixels != U(1):
            scatter_frames(planes, row, pixels, depth, group)
            if len(following):
                scatter_frames(planes + row_nbytes, next_row, pixels, depth, group)
    return S(-1)


@kernel(
    types.UniTuple(types.int64, 2)(  # type: ignore[no-untyped-call]
        _CELLS, _SOURCE, types.uint64, _BYTES, _BYTES
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
    _fill_zero(steps, _PADDING)
    return S(steps + _PADDING - begin), S(first)
