"""``Canvas``: one picture of a video, made of a frame and of what is said about it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.recording.exports.captions import Caption
from sb3_extra_buffers.recording.exports.drawing import BACKGROUND
from sb3_extra_buffers.recording.exports.overlay import MIN_WIDTH, Overlay

#: Frames whose shorter side is less are enlarged until it is not.
_SMALL = 240


class Canvas:
    """Puts frames, enlarged by whole numbers so that every pixel stays a square, and overlays together.

    :param size: height and width of a frame
    :param scale: how much larger it is shown; ``None`` for the least with which the shorter side has 240 pixels
    :param overlay: whether something is said below it
    :param feature: what makes the pictures, for errors
    """

    def __init__(self, size: tuple[int, int], scale: int | None, overlay: bool, feature: str) -> None:
        if scale is not None and (isinstance(scale, bool) or not isinstance(scale, int) or scale < 1):
            raise ParameterError(feature, "scale", scale, "it must be an integer of at least 1, or None")
        height, width = size
        self.scale = -(-_SMALL // min(height, width)) if scale is None else scale
        tall, wide = height * self.scale, width * self.scale
        # Video codecs store colours for squares of two by two pixels, so neither side may be odd.
        self.width = _even(max(wide, MIN_WIDTH) if overlay else wide)
        self._overlay = Overlay(self.width, feature) if overlay else None
        below = self._overlay.height if self._overlay is not None else 0
        self.height = _even(tall + below)
        left = (self.width - wide) // 2
        self._frame = slice(0, tall), slice(left, left + wide)
        self._below = slice(tall, tall + below)
        self._picture = np.empty((self.height, self.width, 3), np.uint8)
        self._picture[:] = BACKGROUND

    def picture(self, frame: NDArray[np.uint8], caption: Caption) -> NDArray[np.uint8]:
        """A picture of shape ``(height, width, 3)``, in memory that the next one is made in.

        :param frame: shape ``(height, width, 3)`` of a frame
        :param caption: what is said about it, if anything is
        """
        self._picture[self._frame] = enlarged(frame, self.scale)
        if self._overlay is not None:
            self._picture[self._below] = self._overlay.draw(caption)
        return self._picture


def enlarged(frame: NDArray[np.uint8], scale: int) -> NDArray[np.uint8]:
    """Every pixel as a square.

    :param frame: shape ``(height, width, 3)``
    :param scale: length of the sides of the squares
    """
    return frame if scale == 1 else frame.repeat(scale, 0).repeat(scale, 1)


def _even(length: int) -> int:
    return length + length % 2
