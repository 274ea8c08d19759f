"""The bytes of frames in a file: some frames that follow each other, as one payload.

Within a block, every frame but the first is the difference to the frame before it, byte by byte and modulo 256: where
nothing moves there are zeros, which any codec makes small. Where everything does, frames are compressed as they are.
Some frames, now and then, tell which of the two is smaller.
Bytes of frames come channel by channel, so that a codec finds what frames of a stack have in common; those of colours
come pixel by pixel, because the three change together.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.codecs import CellSpec, Codec, CodecSpec, bind
from sb3_extra_buffers.memory import Bytes

#: About how many bytes of frames make a block, and how many frames at the least and at the most.
_BLOCK_NBYTES = 1 << 23
_MIN_FRAMES, _MAX_FRAMES = 16, 256
#: How a block was prepared for its codec.
AS_THEY_ARE, DIFFERENCES = 0, 1
#: How many frames are compressed both ways to choose one, which is then taken for so many blocks.
_TRIED, _BLOCKS_PER_TRIAL = 16, 8
_COLOURS = 3


def most_frames(frame_nbytes: int) -> int:
    """How many frames of this size make a block."""
    return min(max(_BLOCK_NBYTES // frame_nbytes, _MIN_FRAMES), _MAX_FRAMES)


class FrameBlocks:
    """Turns frames into payloads and back.

    :param spec: the codec
    :param shape: ``(H, W, C)`` of a frame
    :param dtype: of its elements
    :param frames: how many frames a block has; ``None`` for as many as take some megabytes
    """

    def __init__(
        self, spec: CodecSpec, shape: tuple[int, int, int], dtype: np.dtype[Any], frames: int | None = None
    ) -> None:
        self._shape, self._dtype = shape, dtype.newbyteorder("<")
        self._frame_nbytes = math.prod(shape) * dtype.itemsize
        #: How many frames a block has; the last one may have fewer.
        self.frames = most_frames(self._frame_nbytes) if frames is None else frames
        self._by_channel = shape[2] not in (1, _COLOURS)
        self._bound: dict[int, Codec] = {}
        self._encoded, self._how = 0, DIFFERENCES
        #: The codec with all its parameters.
        self.spec = self._codec(1, spec).spec

    def encode(self, frames: NDArray[Any]) -> tuple[Bytes, int]:
        """The payload of the frames that come next, and how they were prepared.

        :param frames: shape ``(n, H, W, C)``
        """
        ordered = frames.astype(self._dtype, copy=False)
        rows = np.ascontiguousarray(ordered.transpose(0, 3, 1, 2) if self._by_channel else ordered)
        rows = rows.reshape(len(frames), -1).view(np.uint8)
        if not self._encoded % _BLOCKS_PER_TRIAL:
            middle = max(0, len(rows) - _TRIED) // 2
            few = rows[middle : middle + _TRIED]
            sizes = [len(self._payload(few, how)) for how in (AS_THEY_ARE, DIFFERENCES)]
            self._how = DIFFERENCES if sizes[DIFFERENCES] < sizes[AS_THEY_ARE] else AS_THEY_ARE
        self._encoded += 1
        return self._payload(rows, self._how), self._how

    def _payload(self, rows: Bytes, how: int) -> Bytes:
        if how == DIFFERENCES:
            prepared = rows.copy()
            prepared[1:] -= rows[:-1]
        else:
            prepared = rows
        payload = memoryview(self._codec(len(rows), self.spec).encode(prepared.reshape(-1))).cast("B")
        # A copy: the memory of what some libraries return is as large as what they were given.
        return np.array(payload)

    def decode(self, payload: Bytes, count: int, how: int) -> NDArray[Any]:
        """The frames of a block, as a new array.

        :param payload: what :meth:`encode` returned
        :param count: how many frames it has
        :param how: as they were prepared
        """
        rows = np.empty((count, self._frame_nbytes), np.uint8)
        self._codec(count, self.spec).decode_into(payload, rows.reshape(-1))
        if how == DIFFERENCES:
            # numpy.add.accumulate() takes fifty times as long: it goes pixel by pixel.
            for number in range(1, count):
                rows[number] += rows[number - 1]
        height, width, channels = self._shape
        if not self._by_channel:
            return rows.view(self._dtype).reshape(count, *self._shape)
        return rows.view(self._dtype).reshape(count, channels, height, width).transpose(0, 2, 3, 1)

    def _codec(self, count: int, spec: CodecSpec) -> Codec:
        if count not in self._bound:
            self._bound[count] = bind(spec, CellSpec(np.uint8, count * self._frame_nbytes))
        return self._bound[count]
