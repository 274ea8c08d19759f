"""Putting observations together, in numpy: all chunks of a batch side by side, frame by frame."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sb3_extra_buffers.frames.kernels import ChunkSource
from sb3_extra_buffers.frames.packing import Parsed
from sb3_extra_buffers.frames.streams import ZERO, Streams
from sb3_extra_buffers.views import Bytes, Indices


def read_frames(streams: Streams, source: ChunkSource, references: Indices, rooms: Sequence[memoryview]) -> None:
    """Write the frames of observations to where they are wanted, one behind the other.

    :param streams: what observations are made of
    :param source: where chunks are that are complete
    :param references: which observations
    :param rooms: for equal parts of them
    """
    newest, depth, nbytes = streams.newest[references], streams.geometry.depth, streams.geometry.frame_nbytes
    backs = streams.backs[streams.pattern[references]].astype(np.int64)
    is_stored = (backs != ZERO) & (newest > 0)[:, np.newaxis]
    places = [(room, begin) for room in rooms for begin in range(0, len(room), nbytes)]
    blank = bytes(nbytes)
    for room, begin in map(places.__getitem__, np.flatnonzero(~is_stored).tolist()):
        room[begin : begin + nbytes] = blank
    rows, columns = np.nonzero(is_stored)
    if not len(rows):
        return
    slots, offsets = np.divmod(newest[rows].astype(np.int64) - 1, streams.room)
    offsets -= backs[rows, columns]
    while (early := offsets < 0).any():
        slots[early] = streams.previous[slots[early]]
        offsets[early] += streams.sizes[slots[early]]
    wanted, which = np.unique(slots, return_inverse=True)
    order = np.argsort(offsets, kind="stable")
    targets = [places[place] for place in (rows * depth + columns)[order].tolist()]
    _SideBySide(streams, source, wanted).deliver(which.reshape(-1)[order], offsets[order], targets)


class _SideBySide:
    """Chunks, and a frame of each that is made into the next one.

    :param streams: what they belong to
    :param source: where those are that are complete
    :param slots: which chunks
    """

    def __init__(self, streams: Streams, source: ChunkSource, slots: Indices) -> None:
        self._sizes = streams.sizes[slots].astype(np.int64)
        self._packed: list[Bytes] = [np.empty(0, np.uint8)] * len(slots)
        self._frames = np.empty((len(slots), streams.geometry.frame_nbytes), np.uint8)
        stream_of = dict(zip(streams.open.tolist(), range(streams.streams)))
        complete = []
        for index, (slot, size) in enumerate(zip(slots.tolist(), self._sizes.tolist())):
            stream = stream_of.get(slot)
            if stream is None:
                complete.append(index)
            else:
                self._packed[index] = streams.filling.packed(stream, size)
                self._frames[index] = streams.filling.base[stream]
        chunks = source.load(slots[complete].tolist())
        for index, packed, base in zip(complete, chunks.packed, chunks.bases):
            self._packed[index] = packed
            self._frames[index] = base

    def deliver(self, which: Indices, offsets: Indices, targets: Sequence[tuple[memoryview, int]]) -> None:
        """Write frames to where they are wanted.

        :param which: of which chunk, for each
        :param offsets: which of its frames, in ascending order
        :param targets: where to
        """
        count, nbytes = self._frames.shape
        upto = np.zeros(count, np.int64)
        np.maximum.at(upto, which, offsets + 1)
        parsed = Parsed(self._packed, self._sizes, upto, nbytes)
        most = int(upto.max())
        edges, ends = np.searchsorted(offsets, np.arange(most + 1)).tolist(), parsed.ends.tolist()
        # One frame at a time through memoryviews: less work than an index of numpy, which copies twice.
        pixels, view, begins = self._frames.reshape(-1), memoryview(self._frames.reshape(-1)), (which * nbytes).tolist()
        done = 0
        for offset in range(most):
            pixels[parsed.places[done : ends[offset]]] = parsed.values[done : ends[offset]]
            done = ends[offset]
            for index in range(edges[offset], edges[offset + 1]):
                (room, begin), source = targets[index], begins[index]
                room[begin : begin + nbytes] = view[source : source + nbytes]
