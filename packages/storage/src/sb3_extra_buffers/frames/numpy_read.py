"""Putting observations together, in numpy: chunk by chunk, each frame out of the one before it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sb3_extra_buffers.frames.kernels import Chunks, ChunkSource
from sb3_extra_buffers.frames.needs import needs
from sb3_extra_buffers.frames.packing import Parsed
from sb3_extra_buffers.frames.streams import Streams
from sb3_extra_buffers.memory import BatchMemory, Bytes, Indices


def read_frames(
    streams: Streams, source: ChunkSource, references: Indices, rooms: Sequence[Bytes], memory: BatchMemory
) -> None:
    """Write the frames of observations to where they are wanted, one behind the other.

    :param streams: what observations are made of
    :param source: where chunks are that are complete
    :param references: which observations
    :param rooms: for equal parts of them, C-contiguous
    :param memory: for what is needed on the way
    """
    nbytes = streams.geometry.frame_nbytes
    found = needs(streams, references)
    places = [frame for room in rooms for frame in room.reshape(-1, nbytes)]
    for place in found.blank.tolist():
        places[place].fill(0)
    if not len(found.slots):
        return
    upto = np.zeros(len(found.slots), np.int64)
    np.maximum.at(upto, found.which, found.offsets + 1)
    chunks = _load(streams, source, found.slots)
    parsed = Parsed(chunks.packed, streams.sizes[found.slots].astype(np.int64), upto, nbytes, memory)
    order = np.lexsort((found.offsets, found.which))
    wanted = zip(*(part[order].tolist() for part in (found.which, found.offsets, found.places)))
    # A frame is made where it is wanted, and the next one out of a copy of it.
    last, done, frame = -1, 0, chunks.bases[0]
    for chunk, offset, place in wanted:
        if chunk != last:
            last, done, frame = chunk, 0, chunks.bases[chunk]
        target = places[place]
        target[:] = frame
        if offset >= done:
            parsed.apply(target, chunk, done, offset + 1)
            done = offset + 1
        frame = target


def _load(streams: Streams, source: ChunkSource, slots: Indices) -> Chunks:
    """The chunks in these slots, complete or not."""
    stream_of = dict(zip(streams.open.tolist(), range(streams.streams)))
    numbers: list[int] = slots.tolist()
    complete = source.load([slot for slot in numbers if slot not in stream_of])
    pairs, filling, packed, bases = zip(complete.packed, complete.bases), streams.filling, [], []
    for slot in numbers:
        stream = stream_of.get(slot)
        if stream is None:
            content, base = next(pairs)
        else:
            content, base = filling.packed(stream, int(streams.sizes[slot])), filling.base[stream]
        packed.append(content)
        bases.append(base)
    return Chunks(packed, bases)
