"""Lookup of frames: the chunk, the offset and the target of every frame of a batch of observations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sb3_extra_buffers.frames.streams import ZERO, Streams
from sb3_extra_buffers.memory import Indices


class Lookup(NamedTuple):
    """The frames of a batch. The target of a frame is ``row * depth + index``: row of the batch, index in the stack.

    ``slots`` are the chunks that are needed, each once. Each frame has the index of its chunk in them (``which``), its
    offset in the chunk and its target. Frames of zeros only have a target, in ``blank``.
    """

    slots: Indices
    which: Indices
    offsets: Indices
    targets: Indices
    blank: Indices


def find_frames(streams: Streams, references: Indices) -> Lookup:
    """Find all frames of observations."""
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
    targets = rows * streams.geometry.depth + columns
    return Lookup(wanted, which.reshape(-1), offsets, targets, np.flatnonzero(~is_stored))
