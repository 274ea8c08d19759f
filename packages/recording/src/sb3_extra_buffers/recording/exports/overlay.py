"""``Overlay``: what happened at a step, as a strip below its frame."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.recording.exports.captions import Caption, reward_text
from sb3_extra_buffers.recording.exports.drawing import (
    ACCENT,
    BACKGROUND,
    CLEAR,
    END,
    GROOVE,
    QUIET,
    Pen,
    reward_color,
)
from sb3_extra_buffers.recording.exports.extras import require

#: In anything narrower, two columns of text cannot be read.
MIN_WIDTH = 240
_LETTERS = 12, 26
_LETTERS_PER_WIDTH = 1 / 20


class Overlay:
    """Draws two lines of text and how much of the episode is over. It covers nothing of the frame.

    :param width: of the strip, at least ``MIN_WIDTH``
    :param feature: what draws, for the error
    """

    def __init__(self, width: int, feature: str) -> None:
        self._image = require("PIL.Image", feature)
        self._draw = require("PIL.ImageDraw", feature)
        size = min(max(round(width * _LETTERS_PER_WIDTH), _LETTERS[0]), _LETTERS[1])
        self._pen = Pen(size, feature)
        self._margin = size // 2
        self._bar = max(4, size // 10 * 2)
        self.width = width
        self.height = self._bar + 2 * self._pen.line + 2 * self._margin

    def draw(self, caption: Caption) -> NDArray[np.uint8]:
        """The strip of a step: shape ``(height, width, 3)``.

        :param caption: what to say
        """
        image = self._image.new("RGB", (self.width, self.height), BACKGROUND)
        draw = self._draw.Draw(image)
        draw.rectangle((0, 0, self.width - 1, self._bar - 1), fill=GROOVE)
        seen = round(caption.progress * self.width)
        draw.rectangle((0, 0, max(seen - 1, 0), self._bar - 1), fill=END if caption.done else ACCENT)
        place = [("episode ", QUIET), (str(caption.episode), CLEAR)]
        place += [("    step ", QUIET), (str(caption.step_in_episode), CLEAR)]
        self._line(draw, 0, place, [("return ", QUIET), (f"{caption.total:.5g}", CLEAR)])
        reward = [("reward ", QUIET), (reward_text(caption.reward), reward_color(caption.reward))]
        self._line(draw, 1, [("action ", QUIET), (caption.action, CLEAR)], reward)
        return np.asarray(image)

    def _line(self, draw: Any, number: int, left: list[Any], right: list[Any]) -> None:
        top = self._bar + self._margin + number * self._pen.line
        room = self.width - 2 * self._margin
        needed = sum(self._pen.width(text) for text, _ in right)
        self._pen.write(draw, (self.width - self._margin - needed, top), right, needed)
        self._pen.write(draw, (self._margin, top), left, room - needed - self._margin)
