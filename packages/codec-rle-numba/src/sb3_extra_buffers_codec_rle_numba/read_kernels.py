"""Reading observations, compiled: find the chunks of a batch, then decode each frame once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from sb3_extra_buffers.frames.streams import ZERO
from sb3_extra_buffers_codec_rle_numba.jit import copy, helper, kernel, prefetch, store
from sb3_extra_buffers_codec_rle_numba.patches import (
    PADDING,
    apply_patch,
    apply_patch_at_page_end,
    copy_frame,
    ends_with_page,
    fill_zero,
    load_count,
    scatter_frames,
)
from sb3_extra_buffers_codec_rle_numba.table import (
    BACKS,
    BASE,
    CELLS_PER_PLANE,
    CONTENT,
    CONTENT_NBYTES,
    COUNTS,
    DEPTH,
    FILLED,
    GROUP,
    MARK,
    NEWEST,
    OPEN,
    PATTERN,
    PIXELS,
    PLACE,
    PREVIOUS,
    REACH,
    ROOM,
    SIZES,
    STEPS,
    STEPS_NBYTES,
    STREAMS,
    WIDTH,
    Bytes,
    Numbers,
    Rows,
    S,
    Table,
    U,
    byte,
    int32,
    int64,
)

#: The rows of a plan.
SLOT_OF, ADDRESS_OF, LENGTH_OF, BASE_OF = range(4)
#: How much of a chunk is prefetched, in cache lines.
_LINES = 32
#: More frames than any observation reaches back.
_FAR = S(1 << 40)
BaseNumbers = types.Array(types.int32, 1, "C", readonly=True)


@kernel(
    types.int64(Table, Numbers, types.boolean, types.uint64, Table, Numbers, BaseNumbers, Table, types.int64[:, ::1])
)
def plan_read(
    table: Any,
    references: Any,
    both: Any,
    stamp: Any,
    addresses: Any,
    lengths: Any,
    base_of: Any,
    bases: Any,
    plan: Any,
) -> Any:
    """List all complete chunks that observations reach into, each once; return their number, negated if any is unknown.

    The plan has the slot, the address and the length of each chunk, and the address of its reference frame.
    """
    are_known = True
    count, number = S(0), len(references)
    for index in range(2 * number if both else number):
        reference = U(references[index]) if index < number else U(references[index - number]) + table[CELLS_PER_PLANE]
        newest = int32(table[NEWEST], reference)
        if newest == U(0):
            continue
        stream = reference % table[STREAMS]
        slot, covered = (newest - U(1)) // table[ROOM], (newest - U(1)) % table[ROOM]
        reach = byte(table[REACH], byte(table[PATTERN], reference))
        while True:
            if slot != int32(table[OPEN], stream) and int32(table[MARK], slot) != stamp:
                store(table[MARK] + slot * U(4), np.uint32(stamp))
                store(table[PLACE] + slot * U(4), np.uint32(count))
                plan[SLOT_OF, count] = S(slot)
                if slot < U(len(addresses)) and addresses[slot]:
                    plan[ADDRESS_OF, count] = S(addresses[slot])
                    plan[LENGTH_OF, count] = lengths[slot]
                    plan[BASE_OF, count] = S(bases[base_of[slot]])
                else:
                    are_known = False
                count += S(1)
            if reach <= covered:
                break
            slot = int32(table[PREVIOUS], slot)
            covered += int32(table[SIZES], slot)
    return count if are_known else -count


@helper
def _frames_between(table: Any, newer: Any, older: Any, pattern: Any) -> Any:
    """How many frames of the stream a newest frame is older than that of an observation with this pattern.

    ``_FAR`` if the observation does not reach into its chunk.
    """
    room, reach = table[ROOM], byte(table[REACH], pattern)
    here, slot, covered = (older - U(1)) // room, (newer - U(1)) // room, (newer - U(1)) % room
    while slot != here:
        if reach <= covered:
            return _FAR
        slot = int32(table[PREVIOUS], slot)
        covered += int32(table[SIZES], slot)
    return S(covered) - S((older - U(1)) % room)


@helper
def _is_shift(table: Any, reference: Any) -> Any:
    """Whether a next observation is its observation shifted by one frame: the same frames of the stream."""
    depth, following = table[DEPTH], reference + table[CELLS_PER_PLANE]
    before, after = int32(table[NEWEST], reference), int32(table[NEWEST], following)
    pattern, next_pattern = byte(table[PATTERN], reference), byte(table[PATTERN], following)
    # How many frames later in the stream the newest frame of the next observation is.
    later = S(0)
    if before != U(0) and after != U(0):
        later = _frames_between(table, after, before, next_pattern)
        if later == _FAR:  # stacks can run backwards; if that is far, too, they have no frame in common
            later = -_frames_between(table, before, after, pattern)
    backs, next_backs = table[BACKS] + pattern * depth, table[BACKS] + next_pattern * depth
    for index in range(depth - U(1)):
        back = byte(backs, U(index) + U(1)) if before != U(0) else U(ZERO)
        next_back = byte(next_backs, U(index)) if after != U(0) else U(ZERO)
        if back == U(ZERO) or next_back == U(ZERO):
            if back != next_back:
                return False
        elif S(next_back) != S(back) + later:
            return False
    return True


@kernel(types.boolean(Table, Numbers))
def are_shifts(table: Any, references: Any) -> Any:
    """Whether every next observation of a batch is its observation shifted by one frame."""
    for index in range(len(references)):  # noqa: SIM110  # numba has no all()
        if not _is_shift(table, U(references[index])):
            return False
    return True


@helper
def _note_needs(table: Any, reference: Any, first: Any, target: Any, needs: Any, count: Any) -> Any:
    """List the frames of an observation from index ``first`` on, and their targets, ordered by chunk and offset.

    The target is that of the first of all frames. Returns the number of entries.
    """
    depth, nbytes, room = table[DEPTH], table[PIXELS] * table[GROUP], table[ROOM]
    newest = int32(table[NEWEST], reference)
    if newest == U(0):
        fill_zero(target + first * nbytes, (depth - first) * nbytes)
        return count
    backs = table[BACKS] + byte(table[PATTERN], reference) * depth
    for index in range(first, depth):
        back = byte(backs, U(index))
        if back == U(ZERO):
            fill_zero(target + U(index) * nbytes, nbytes)
            continue
        slot, offset = (newest - U(1)) // room, (newest - U(1)) % room
        while back > offset:
            slot = int32(table[PREVIOUS], slot)
            offset += int32(table[SIZES], slot)
        key = slot * room + offset - back
        place = count
        while place and int64(needs, (place - U(1)) * U(2)) > key:
            copy(needs + place * U(16), needs + (place - U(1)) * U(16), U(16))
            place -= U(1)
        store(needs + place * U(16), key)
        store(needs + place * U(16) + U(8), target + U(index) * nbytes)
        count += U(1)
    return count


@helper
def _supply(table: Any, stream: Any, needs: Any, count: Any, plan: Any) -> Any:
    """Decode every frame into its target; return the index of a damaged chunk in the plan, or -1.

    Each frame is decoded in its target, starting from a copy of the frame before it.
    """
    nbytes, room, width = table[PIXELS] * table[GROUP], table[ROOM], table[WIDTH]
    need = U(0)
    while need < count:
        slot = int64(needs, need * U(2)) // room
        first, size, place, at_page_end = slot * room, int32(table[SIZES], slot), S(-1), False
        if slot == int32(table[OPEN], stream):
            counts = table[COUNTS] + stream * room * width
            steps = table[STEPS] + stream * table[STEPS_NBYTES]
            content = table[CONTENT] + stream * table[CONTENT_NBYTES]
            limit, base = content + int64(table[FILLED], stream * U(2) + U(1)), table[BASE] + stream * nbytes
        else:
            place = S(int32(table[PLACE], slot))
            counts, length = U(plan[ADDRESS_OF, place]), U(plan[LENGTH_OF, place])
            if length < size * width + PADDING:
                return place
            steps, limit = counts + size * width, counts + length - PADDING
            content = steps
            for offset in range(size):
                content += load_count(counts + U(offset) * width, width) * U(2)
            if content > limit:
                return place
            base = U(plan[BASE_OF, place])
            at_page_end = ends_with_page(counts + length)
        frame = int64(needs, need * U(2) + U(1))
        copy_frame(frame, base, nbytes)
        for offset in range(size):
            number = load_count(counts + U(offset) * width, width)
            if at_page_end:
                content = apply_patch_at_page_end(frame, nbytes, steps, number, content, limit)
            else:
                content = apply_patch(frame, nbytes, steps, number, content, limit)
            if content == U(0):
                return place
            steps += number * U(2)
            if int64(needs, need * U(2)) != first + U(offset):
                continue
            need += U(1)
            while need < count and int64(needs, need * U(2)) == first + U(offset):
                copy_frame(int64(needs, need * U(2) + U(1)), frame, nbytes)
                need += U(1)
            if need == count or int64(needs, need * U(2)) - first >= room:
                break
            following = int64(needs, need * U(2) + U(1))
            copy_frame(following, frame, nbytes)
            frame = following
    return S(-1)


@helper
def _prefetch_chunk(table: Any, reference: Any, plan: Any) -> None:
    """Prefetch the chunk of an observation's newest frame, while another observation is read."""
    newest = int32(table[NEWEST], reference)
    slot = (newest - U(1)) // table[ROOM]
    if newest != U(0) and slot != int32(table[OPEN], reference % table[STREAMS]):
        place = S(int32(table[PLACE], slot))
        for line in range(_LINES):
            prefetch(U(plan[ADDRESS_OF, place]) + U(line) * U(64))


@kernel(types.int64(Table, Numbers, types.int64[:, ::1], Rows, Rows, Bytes))
def read_rows(table: Any, references: Any, plan: Any, rows: Any, following: Any, scratch: Any) -> Any:
    """Read observations, and next observations; return the index of a damaged chunk in the plan, or -1.

    Rows that have room for one frame more get the newest frame of the next observation there.
    """
    depth, pixels, group = table[DEPTH], table[PIXELS], table[GROUP]
    nbytes = pixels * group
    row_nbytes, stride = depth * nbytes, U(rows.shape[1])
    overlap = stride != row_nbytes
    first = depth - U(1) if overlap else U(0)
    needs = U(scratch.ctypes.data)
    planes = needs + U(32) * depth
    for index in range(len(references)):
        row, next_row = U(rows.ctypes.data) + U(index) * stride, U(following.ctypes.data) + U(index) * row_nbytes
        reference = U(references[index])
        stream = reference % table[STREAMS]
        if index + 1 < len(references):
            _prefetch_chunk(table, U(references[index + 1]), plan)
        target = row if pixels == U(1) else planes
        count = _note_needs(table, reference, U(0), target, needs, U(0))
        if overlap or len(following):
            next_target = row + nbytes if overlap else next_row if pixels == U(1) else planes + row_nbytes
            count = _note_needs(table, reference + table[CELLS_PER_PLANE], first, next_target, needs, count)
        damaged = _supply(table, stream, needs, count, plan)
        if damaged >= S(0):
            return damaged
        if pixels != U(1):
            scatter_frames(planes, row, pixels, depth, group)
            if len(following):
                scatter_frames(planes + row_nbytes, next_row, pixels, depth, group)
    return S(-1)
