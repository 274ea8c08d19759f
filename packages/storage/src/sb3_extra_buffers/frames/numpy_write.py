"""Taking an observation apart, in numpy: which of its frames are new, and which chunks it reaches into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sb3_extra_buffers.frames.packing import patch
from sb3_extra_buffers.frames.streams import BLANK, MAX_BACK, NONE, PATTERNS, ZERO, Streams
from sb3_extra_buffers.memory import Bytes

#: The row of a frame that is not among those of the last observation.
_NO_ROW = -1


@dataclass(frozen=True)
class _Place:
    """Where a frame is: its number in the stream, its position, its row among the frames of the last observation."""

    number: int
    position: int
    row: int


def write_observation(streams: Streams, stream: int, reference: int, frames: Bytes) -> None:
    """Let a reference stand for an observation.

    :param streams: what is changed
    :param stream: whose observation this is
    :param reference: which one
    :param frames: what it is made of, shape ``(depth, frame_nbytes)``
    """
    own = len(streams.newest) - streams.streams + stream
    if _is_last(streams, stream, frames):
        _assign(streams, reference, int(streams.newest[own]), int(streams.pattern[own]))
        _note_repetition(streams, stream, own)
        return
    streams.repeated[stream] = 0
    places = _find_all(streams, stream, frames)
    rows, pattern = [place.row for place in places], _pattern(streams, [place.number for place in places])
    if pattern < 0:  # no room for another pattern: as new frames, there is always one for it
        places, pattern = [_append(streams, stream, frame) for frame in frames], 0
    newest = max(places, key=lambda place: place.number)
    position = 0 if newest.number == BLANK else newest.position + 1
    _assign(streams, reference, position, pattern)
    _assign(streams, own, position, pattern)
    streams.last_row[stream] = _keep(streams.last[stream], rows, frames)
    streams.last_number[stream] = [place.number for place in places]
    streams.last_position[stream] = [place.position for place in places]


def brings_new(streams: Streams, stream: int, frames: Bytes) -> bool:
    """Whether an observation has a frame that is nowhere, or would be stored again for want of a pattern.

    :param streams: what it is compared with
    :param stream: whose observation it is
    :param frames: what it is made of
    """
    if streams.numbers[0] == PATTERNS:
        return True
    are_blank = [not frame.any() for frame in frames]
    for index, frame in enumerate(frames):
        if are_blank[index] or _find(streams, stream, index, frame) is not None:
            continue
        if not index or are_blank[index - 1] or not np.array_equal(frame, frames[index - 1]):
            return True
    return False


def _note_repetition(streams: Streams, stream: int, own: int) -> None:
    """Let an observation that stands still be stored again in time, before a heap drops the chunks that it reaches."""
    if not streams.newest[own]:
        return
    slot, offset = divmod(int(streams.newest[own]) - 1, streams.room)
    if slot != streams.open[stream] or streams.reach[streams.pattern[own]] > offset:
        streams.repeated[stream] += 1
        if streams.repeated[stream] == streams.chunk:
            streams.repeated[stream] = 0
            streams.forget_last(stream)


def _is_last(streams: Streams, stream: int, frames: Bytes) -> bool:
    if streams.last_number[stream, 0] == NONE:
        return False
    rows, last = streams.last_row[stream].tolist(), streams.last[stream]
    return all(np.array_equal(frame, last[row]) for row, frame in zip(rows, frames))


def _find_all(streams: Streams, stream: int, frames: Bytes) -> list[_Place]:
    """The place of each frame: of one that is there already, or of a new one."""
    found: list[_Place] = []
    # What is appended on the way makes no frame of the last observation too old for the others.
    known = [None if not frame.any() else _find(streams, stream, index, frame) for index, frame in enumerate(frames)]
    for index, frame in enumerate(frames):
        place = known[index]
        if place is not None:
            found.append(place)
        elif not frame.any():
            found.append(_Place(BLANK, 0, _NO_ROW))
        elif index and found[-1].number != BLANK and np.array_equal(frame, frames[index - 1]):
            found.append(found[-1])
        else:
            found.append(_append(streams, stream, frame))
    return found


def _find(streams: Streams, stream: int, index: int, frame: Bytes) -> _Place | None:
    """Which frame of the stream's last observation this one is."""
    depth, last, rows = streams.geometry.depth, streams.last[stream], streams.last_row[stream].tolist()
    numbers, positions = streams.last_number[stream].tolist(), streams.last_position[stream].tolist()
    oldest = max(int(streams.total[stream]) - MAX_BACK + 2 * depth, 0)
    # First the one that a shift would bring here, then the one that was here, then any.
    for other in (index + 1, index, *range(depth)):
        if other < depth and numbers[other] >= oldest and np.array_equal(frame, last[rows[other]]):
            return _Place(numbers[other], positions[other], rows[other])
    return None


def _append(streams: Streams, stream: int, frame: Bytes) -> _Place:
    """Add a frame to the chunk that its stream is filling."""
    slot, number, filling = int(streams.open[stream]), int(streams.total[stream]), streams.filling
    place, (steps, content) = int(streams.sizes[slot]), filling.filled[stream].tolist()
    own_steps, own_content = patch(filling.tail[stream], frame)
    filling.counts[stream, place] = len(own_steps) // 2
    filling.steps[stream, steps : steps + len(own_steps)] = own_steps
    filling.content[stream, content : content + len(own_content)] = own_content
    filling.filled[stream] += len(own_steps), len(own_content)
    if not place:
        filling.first_nbytes[stream] = len(own_steps) + len(own_content)
    filling.tail[stream] = frame
    streams.sizes[slot] += 1
    streams.total[stream] += 1
    return _Place(number, slot * streams.room + place, _NO_ROW)


def _keep(last: Bytes, rows: list[int], frames: Bytes) -> list[int]:
    """Keep the frames of an observation, most of which are kept already; return the row of each."""
    rows, used = list(rows), set(rows)
    for index, frame in enumerate(frames):
        if rows[index] == _NO_ROW:
            rows[index] = min(set(range(len(frames))) - used)
            used.add(rows[index])
            last[rows[index]] = frame
    return rows


def _pattern(streams: Streams, numbers: Sequence[int]) -> int:
    """The number of a pattern, a new one if need be; -1 if there is no room for it."""
    newest = max(numbers)
    if newest == BLANK:
        return 0
    backs = np.array([ZERO if number == BLANK else newest - number for number in numbers], np.uint8)
    count = int(streams.numbers[0])
    known = np.flatnonzero((streams.backs[:count] == backs).all(axis=1))
    if len(known):
        return int(known[0])
    if count == PATTERNS:
        return -1
    streams.backs[count] = backs
    streams.reach[count] = backs[backs != ZERO].max()
    streams.numbers[0] += 1
    return count


def _assign(streams: Streams, reference: int, newest: int, pattern: int) -> None:
    """Let a reference stand for an observation, and no longer for what it stood for."""
    before = int(streams.newest[reference]), int(streams.pattern[reference])
    streams.newest[reference], streams.pattern[reference] = newest, pattern
    _count_users(streams, newest, pattern, 1)
    _count_users(streams, *before, -1)


def _count_users(streams: Streams, newest: int, pattern: int, change: int) -> None:
    """Add a user to every chunk that an observation reaches into, or take one away."""
    if not newest:
        return
    slot, offset = divmod(newest - 1, streams.room)
    further = int(streams.reach[pattern]) - offset
    while True:
        before = int(streams.previous[slot])
        if change > 0:
            streams.users[slot] += 1
        else:
            streams.leave(slot)
        if further <= 0:
            return
        slot = before
        further -= int(streams.sizes[slot])
