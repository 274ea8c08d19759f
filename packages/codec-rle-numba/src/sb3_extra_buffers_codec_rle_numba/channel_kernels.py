"""Images whose channels alternate pixel by pixel, compiled: one channel behind the other, at the speed of memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from sb3_extra_buffers_codec_rle_numba.jit import kernel
from sb3_extra_buffers_codec_rle_numba.memory import LANES, deinterleave, load, store

U = np.uint64
_LANES = U(LANES)
#: How many channels an image may have. One is in order as it is; more are rare.
CHANNELS = (2, 3, 4)

Pixels = types.Array(types.uint8, 4, "C", readonly=True)
Planes = types.Array(types.uint8, 4, "C")


@kernel(types.void(Pixels, Planes))
def take_channels_apart(images: Any, out: Any) -> None:
    """Write images of the shape ``(n, height, width, channels)`` to ``(n, channels, height, width)``."""
    count, height, width, depth = images.shape
    channels, pixels = U(depth), U(height * width)
    for image in range(count):
        offset = U(image) * pixels * channels
        source, target = U(images.ctypes.data) + offset, U(out.ctypes.data) + offset
        pixel = U(0)
        while pixel + _LANES <= pixels:
            if depth == 4:
                deinterleave(source + pixel * channels, target + pixel, pixels, 4)
            elif depth == 3:
                deinterleave(source + pixel * channels, target + pixel, pixels, 3)
            else:
                deinterleave(source + pixel * channels, target + pixel, pixels, 2)
            pixel += _LANES
        while pixel < pixels:
            for channel in range(channels):
                byte = load(source + pixel * channels + U(channel), np.uint8(0))
                store(target + U(channel) * pixels + pixel, byte)
            pixel += U(1)
