"""What must be true of numbers that were loaded before kernels follow them: every frame is in a chunk that is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.frames.packing import worst_steps_nbytes
from sb3_extra_buffers.heaps.state import StateError

if TYPE_CHECKING:
    from sb3_extra_buffers.frames.streams import Streams

#: Observations that are looked at together: what is needed for these stays in a core's own cache.
_AT_ONCE = 1 << 15
#: How far back an observation may reach that was never written: it reaches nothing.
_ANYTHING = 255


def check_ways(streams: Streams, max_back: int, zero: int) -> None:
    """Refuse observations whose frames are not in their chunks, and chunks that kernels would write beside.

    Every number is within its limits already.

    :param streams: what was loaded
    :param max_back: how far back an observation may reach, in frames
    :param zero: what stands for a frame of zeros, which is nowhere
    """
    backs = streams.backs.astype(np.int64)
    reach = np.where(backs == zero, 0, backs).max(axis=1)
    if (reach != streams.reach).any() or reach.max() > max_back:
        raise StateError("patterns have impossible sizes")
    _check_free(streams)
    _check_open(streams)
    furthest = int(reach.max())
    within_reach = _within_reach(streams, furthest)
    needed = (reach + 1).astype(np.uint8)
    for begin in range(0, len(streams.newest), _AT_ONCE):
        some = slice(begin, begin + _AT_ONCE)
        found = within_reach.take(streams.newest[some])
        # What any pattern is content with needs no look at the pattern.
        if found.min() <= furthest and (found < needed[streams.pattern[some]]).any():
            raise StateError("an observation has frames that are in no chunk")


def _within_reach(streams: Streams, reach: int) -> NDArray[np.uint8]:
    """For each position of a newest frame, plus 1: how many frames there are from there backwards, 0 if there is none.

    There are far fewer of these than observations, and the numbers of those are followed without another division.
    """
    opened = int(streams.numbers[2])
    sizes = np.where(streams.users[:opened] > 0, streams.sizes[:opened], 0).astype(np.int16)
    previous = streams.previous[:opened]
    before, hop, goes_on = np.zeros(opened, np.int16), previous, np.ones(opened, np.bool_)
    for _ in range(reach):  # a chunk that has frames has at least one
        found = sizes[hop]
        goes_on &= found > 0
        before = np.minimum(before + np.where(goes_on, found, 0), reach)
        if not (goes_on & (before < reach)).any():
            break
        hop = previous[hop]
    offsets = np.arange(streams.room, dtype=np.int16)
    # No pattern reaches further than half of what fits into a byte.
    counts = before.astype(np.uint8)[:, np.newaxis] + np.minimum(offsets, reach).astype(np.uint8) + np.uint8(1)
    counts *= offsets < sizes[:, np.newaxis]
    return np.concatenate([[np.uint8(_ANYTHING)], counts.reshape(-1)])


def _check_free(streams: Streams) -> None:
    """Refuse free slots that are in use, or free twice: they would be used for two chunks."""
    _, free, opened = streams.numbers.tolist()
    idle = np.flatnonzero(streams.users[:opened] == 0)
    if not np.array_equal(np.sort(streams.free[:free]), idle):
        raise StateError("chunks are free that are in use, or the other way round")


def _check_open(streams: Streams) -> None:
    """Refuse chunks that are being filled and claim to be filled with what they have not."""
    filling, frame_nbytes = streams.filling, streams.geometry.frame_nbytes
    slots: list[int] = streams.open.tolist()
    sizes: NDArray[Any] = streams.sizes[streams.open].astype(np.int64)
    if len(set(slots)) != len(slots) or (streams.users[streams.open] < 1).any():
        raise StateError("two streams fill one chunk, or one that is free")
    steps = [2 * int(filling.counts[stream, :size].sum(dtype=np.int64)) for stream, size in enumerate(sizes.tolist())]
    fits = filling.filled[:, 0] <= sizes * worst_steps_nbytes(frame_nbytes)
    fits &= (filling.filled[:, 0] == steps) & (filling.filled[:, 1] <= sizes * frame_nbytes)
    if not fits.all():
        raise StateError("a chunk is filled with more than its frames")
