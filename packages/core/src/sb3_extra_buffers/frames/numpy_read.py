"""Putting observations together, in numpy: all chunks of a batch side by side, frame by frame."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sb3_extra_buffers.frames.kernels import ChunkSource
from sb3_extra_buffers.frames.packing import Parsed
from sb3_extra_buffers.frames.streams import ZERO, Streams
from sb3_extra_buffers.views import Bytes, Indices


def read_frames(streams: Streams, source: ChunkSource, references: Indices, targets: Sequence[Bytes]) -> None:
    """Write the frames of observations to where they are wanted.

    :param streams: what observations are made of
    :param source: where chunks are that are complete
    :param references: which observations
    :param targets: room for each frame of each of them
    """
    newest, depth = streams.newest[references].astype(np.int64), streams.geometry.depth
    backs = streams.backs[streams.pattern[references]].astype(np.int64)
    is_stored = (backs != ZERO) & (newest > 0)[:, np.newaxis]
    for target in np.flatnonzero(~is_stored).tolist():
        targets[target][:] = 0
    rows, places = np.nonzero(is_stored)
    if not len(rows):
        return
    slots, offsets = np.divmod(newest[rows] - 1, streams.room)
    offsets -= backs[rows, places]
    while (early := offsets < 0).any():
        slots[early] = streams.previous[slots[early]]
        offsets[early] += streams.sizes[slots[early]]
    wanted, which = np.unique(slots, return_inverse=True)
    frames = _Side(streams, source, wanted)
    frames.deliver(which.reshape(-1), offsets, [targets[target] for target in (rows * depth + places).tolist()])


class _Side:
    """Chunks side by side.

    :param streams: what they belong to
    :param source: where those are that are complete
    :param slots: which chunks
    """

    def __init__(self, streams: Streams, source: ChunkSource, slots: Indices) -> None:
        self._sizes = streams.sizes[slots].astype(np.int64)
        self._packed: list[Bytes] = [np.empty(0, np.uint8)] * len(slots)
        self._current = np.empty((len(slots), streams.geometry.frame_nbytes), np.uint8)
        stream_of = dict(zip(streams.open.tolist(), range(streams.streams)))
        complete = []
        for index, (slot, size) in enumerate(zip(slots.tolist(), self._sizes.tolist())):
            stream = stream_of.get(slot)
            if stream is None:
                complete.append(index)
            else:
                self._packed[index] = streams.filling.packed(stream, size)
                self._current[index] = streams.filling.base[stream]
        chunks = source.load(slots[complete].tolist())
        for index, packed, base in zip(complete, chunks.packed, chunks.bases):
            self._packed[index] = packed
            self._current[index] = base

    def deliver(self, which: Indices, offsets: Indices, targets: Sequence[Bytes]) -> None:
        """Write frames to where they are wanted.

        :param which: of which chunk, for each
        :param offsets: which of its frames
        :param targets: room for it
        """
        upto = np.zeros(len(self._packed), np.int64)
        np.maximum.at(upto, which, offsets + 1)
        parsed = Parsed(self._packed, self._sizes, upto, self._current.shape[1])
        pixels, due = self._current.reshape(-1), np.argsort(offsets, kind="stable")
        edges = np.searchsorted(offsets[due], np.arange(int(upto.max()) + 1)).tolist()
        due, chunks = due.tolist(), which[due].tolist()
        begin = 0
        for offset, end in enumerate(parsed.ends[: int(upto.max())].tolist()):
            pixels[parsed.places[begin:end]] = parsed.values[begin:end]
            begin = end
            for place in range(edges[offset], edges[offset + 1]):
                targets[due[place]][:] = self._current[chunks[place]]
