"""Encoding of frames in a file: consecutive frames form a block, compressed to one payload.

Within a block, frames are compressed as they are, or as differences: every frame but the first minus the frame before
it, byte by byte, modulo 256. Differences are mostly zero where little moves. A sample of frames is compressed both ways
from time to time, and the smaller way is used. The bytes of stacked frames are stored channel by channel, because
frames of a stack are similar; RGB and grey frames are stored pixel by pixel.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.codecs import CellSpec, Codec, CodecSpec, bind
from sb3_extra_buffers.memory import Bytes

#: Approximate size of a block, and limits of its number of frames.
_BLOCK_NBYTES = 1 << 23
_MIN_FRAMES, _MAX_FRAMES = 16, 256
#: How the frames of a block are prepared for the codec. The numbers are part of the file format.
PLAIN, DIFFERENCES = 0, 1
#: Number of frames compressed both ways, and number of blocks until the next comparison.
_SAMPLE_FRAMES, _BLOCKS_PER_SAMPLE = 16, 8
_RGB_CHANNELS = 3


def frames_per_block(frame_nbytes: int) -> int:
    """Number of frames in a block, for frames of this size."""
    return min(max(_BLOCK_NBYTES // frame_nbytes, _MIN_FRAMES), _MAX_FRAMES)


class FrameBlocks:
    """Encodes and decodes blocks of frames.

    :param spec: the codec
    :param shape: ``(H, W, C)`` of a frame
    :param dtype: dtype of the frames
    :param frames: frames per block; ``None``: chosen by the size of a frame
    """

    def __init__(
        self, spec: CodecSpec, shape: tuple[int, int, int], dtype: np.dtype[Any], frames: int | None = None
    ) -> None:
        self._shape, self._dtype = shape, dtype.newbyteorder("<")
        self._frame_nbytes = math.prod(shape) * dtype.itemsize
        #: Frames per block; the last block may have fewer.
        self.frames = frames_per_block(self._frame_nbytes) if frames is None else frames
        self._by_channel = shape[2] not in (1, _RGB_CHANNELS)
        self._codecs: dict[int, Codec] = {}
        self._encoded, self._preparation = 0, DIFFERENCES
        #: The codec with all its parameters.
        self.spec = self._codec(1, spec).spec

    def encode(self, frames: NDArray[Any]) -> tuple[Bytes, int]:
        """Return the payload of the next block, and how its frames were prepared.

        :param frames: shape ``(n, H, W, C)``
        """
        ordered = frames.astype(self._dtype, copy=False)
        rows = np.ascontiguousarray(ordered.transpose(0, 3, 1, 2) if self._by_channel else ordered)
        rows = rows.reshape(len(frames), -1).view(np.uint8)
        if not self._encoded % _BLOCKS_PER_SAMPLE:
            middle = max(0, len(rows) - _SAMPLE_FRAMES) // 2
            sample = rows[middle : middle + _SAMPLE_FRAMES]
            sizes = [len(self._payload(sample, preparation)) for preparation in (PLAIN, DIFFERENCES)]
            self._preparation = DIFFERENCES if sizes[DIFFERENCES] < sizes[PLAIN] else PLAIN
        self._encoded += 1
        return self._payload(rows, self._preparation), self._preparation

    def _payload(self, rows: Bytes, preparation: int) -> Bytes:
        if preparation == DIFFERENCES:
            prepared = rows.copy()
            prepared[1:] -= rows[:-1]
        else:
            prepared = rows
        payload = memoryview(self._codec(len(rows), self.spec).encode(prepared.reshape(-1))).cast("B")
        # Copy: some libraries return a small part of a buffer as large as their input.
        return np.array(payload)

    def decode(self, payload: Bytes, count: int, preparation: int) -> NDArray[Any]:
        """Return the frames of a block as a new array.

        :param payload: from :meth:`encode`
        :param count: number of frames
        :param preparation: from :meth:`encode`
        """
        rows = np.empty((count, self._frame_nbytes), np.uint8)
        self._codec(count, self.spec).decode_into(payload, rows.reshape(-1))
        if preparation == DIFFERENCES:
            # numpy.add.accumulate() takes fifty times as long.
            for number in range(1, count):
                rows[number] += rows[number - 1]
        height, width, channels = self._shape
        if not self._by_channel:
            return rows.view(self._dtype).reshape(count, *self._shape)
        return rows.view(self._dtype).reshape(count, channels, height, width).transpose(0, 2, 3, 1)

    def _codec(self, count: int, spec: CodecSpec) -> Codec:
        if count not in self._codecs:
            self._codecs[count] = bind(spec, CellSpec(np.uint8, count * self._frame_nbytes))
        return self._codecs[count]
