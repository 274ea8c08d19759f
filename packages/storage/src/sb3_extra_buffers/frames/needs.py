"""Which frames of which chunks observations are made of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sb3_extra_buffers.frames.streams import ZERO, Streams
from sb3_extra_buffers.memory import Indices


class Needs(NamedTuple):
    """Frames of a batch. A place is the number of an observation times the depth of a stack, plus that of a frame.

    :param slots: the chunks that are needed, each once
    :param which: for each frame the number of its chunk among these
    :param offsets: which frame of the chunk it is
    :param places: where it goes
    :param blank: places of frames that are zero
    """

    slots: Indices
    which: Indices
    offsets: Indices
    places: Indices
    blank: Indices


def needs(streams: Streams, references: Indices) -> Needs:
    """What it takes to put observations together.

    :param streams: what observations are made of
    :param references: which observations
    """
    newest = streams.newest[references]
    backs = streams.backs[streams.pattern[references]].astype(np.int64)
    is_stored = (backs != ZERO) & (newest > 0)[:, np.newaxis]
    rows, columns = np.nonzero(is_stored)
    slots, offsets = np.divmod(newest[rows].astype(np.int64) - 1, streams.room)
    offsets -= backs[rows, columns]
    while (early := offsets < 0).any():
        slots[early] = streams.previous[slots[early]]
        offsets[early] += streams.sizes[slots[early]]
    wanted, which = np.unique(slots, return_inverse=True)
    places = rows * streams.geometry.depth + columns
    return Needs(wanted, which.reshape(-1), offsets, places, np.flatnonzero(~is_stored))
