"""Validation of loaded streams: every frame of every observation is in a chunk, so kernels can follow all numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.frames.packing import worst_steps_nbytes
from sb3_extra_buffers.heaps.state import StateError

if TYPE_CHECKING:
    from sb3_extra_buffers.frames.streams import Streams

#: Observations that are checked together: their numbers fit into the cache of one CPU core.
_BATCH = 1 << 15
#: Number of available frames of an observation that was never written: enough for any pattern.
_ANYTHING = 255


def check_references(streams: Streams, max_back: int, zero: int) -> None:
    """Raise if an observation has a frame outside of its chunks, or if kernels would write outside of an open chunk.

    Each number was compared with its limits before. An observation may reach ``max_back`` frames back; ``zero`` is the
    entry of a pattern for a frame of zeros, which is in no chunk.
    """
    backs = streams.backs.astype(np.int64)
    reach = np.where(backs == zero, 0, backs).max(axis=1)
    if (reach != streams.reach).any() or reach.max() > max_back:
        raise StateError("patterns reach further back than is allowed")
    _check_free(streams)
    _check_open(streams)
    furthest = int(reach.max())
    within_reach = _within_reach(streams, furthest)
    needed = (reach + 1).astype(np.uint8)
    for begin in range(0, len(streams.newest), _BATCH):
        some = slice(begin, begin + _BATCH)
        found = within_reach.take(streams.newest[some])
        # Patterns are looked at only if some observation has fewer frames than the longest pattern needs.
        if found.min() <= furthest and (found < needed[streams.pattern[some]]).any():
            raise StateError("an observation has frames that are in no chunk")


def _within_reach(streams: Streams, reach: int) -> NDArray[np.uint8]:
    """For each position of a newest frame, plus 1: the number of frames from there backwards; 0 if none.

    There are far fewer positions than observations, and looking one up takes no division.
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
    # Twice the reach of the longest pattern, plus one, fits into a byte.
    counts = before.astype(np.uint8)[:, np.newaxis] + np.minimum(offsets, reach).astype(np.uint8) + np.uint8(1)
    counts *= offsets < sizes[:, np.newaxis]
    return np.concatenate([[np.uint8(_ANYTHING)], counts.reshape(-1)])


def _check_free(streams: Streams) -> None:
    """Raise if a free slot is in use or listed twice: two chunks would get it."""
    _, free, opened = streams.numbers.tolist()
    idle = np.flatnonzero(streams.users[:opened] == 0)
    if not np.array_equal(np.sort(streams.free[:free]), idle):
        raise StateError("the list of free slots does not match the slots in use")


def _check_open(streams: Streams) -> None:
    """Raise if an open chunk is shared, free, or claims more bytes than its frames can take."""
    filling, frame_nbytes = streams.filling, streams.geometry.frame_nbytes
    slots: list[int] = streams.open.tolist()
    sizes: NDArray[Any] = streams.sizes[streams.open].astype(np.int64)
    if len(set(slots)) != len(slots) or (streams.users[streams.open] < 1).any():
        raise StateError("an open chunk belongs to two streams, or its slot is free")
    steps = [2 * int(filling.counts[stream, :size].sum(dtype=np.int64)) for stream, size in enumerate(sizes.tolist())]
    fits = filling.filled[:, 0] <= sizes * worst_steps_nbytes(frame_nbytes)
    fits &= (filling.filled[:, 0] == steps) & (filling.filled[:, 1] <= sizes * frame_nbytes)
    if not fits.all():
        raise StateError("an open chunk claims more bytes than its frames can take")
