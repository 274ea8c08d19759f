"""Captions of steps, and drawing them: text, the strip below a frame, and the image of a video."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.recording.casting import check_integer
from sb3_extra_buffers.recording.exports.extras import require
from sb3_extra_buffers.recording.protocol import Recording

Color = tuple[int, int, int]
Text = tuple[str, Color]

BACKGROUND: Color = (20, 22, 26)
GROOVE: Color = (52, 57, 66)
QUIET: Color = (140, 148, 160)
CLEAR: Color = (242, 244, 247)
GAIN: Color = (74, 222, 128)
LOSS: Color = (248, 113, 113)
ACCENT: Color = (96, 165, 250)
END: Color = (251, 191, 36)

_ELLIPSIS = "…"
#: Smallest width of the strip: its texts are unreadable if it is narrower.
MIN_WIDTH = 240
#: Smallest and largest font, and font size relative to the width of the strip.
_FONT_SIZES = 12, 26
_FONT_SIZE_PER_WIDTH = 1 / 20
#: Frames are enlarged until their shorter side has this length.
_MIN_SIDE = 240


@dataclass(frozen=True)
class Caption:
    """What is shown about a step.

    :param step: number of the step in the recording
    :param episode: number of its episode; 0 is the oldest episode kept
    :param step_in_episode: number of the step in its episode
    :param progress: part of the episode that is over after the step, from 0 to 1
    :param reward: reward of the step
    :param total: sum of the rewards of its episode so far, kept steps only
    :param action: action as text
    :param done: whether the step was the last of its episode
    """

    step: int
    episode: int
    step_in_episode: int
    progress: float
    reward: float
    total: float
    action: str
    done: bool


class Captions:
    """Captions of the steps of a recording.

    :param recording: the recording
    :param action_names: names of integer actions
    """

    def __init__(self, recording: Recording, action_names: Sequence[str] | None = None) -> None:
        self._episodes = recording.episodes
        self._starts = np.array([episode.start for episode in self._episodes])
        self._clip = recording.without_frames()
        self._names = action_names
        self._totals = np.concatenate([np.cumsum(self._rewards(episode)) for episode in self._episodes])

    def _rewards(self, steps: range) -> NDArray[np.float64]:
        return self._clip.rewards[steps.start : steps.stop].astype(np.float64)

    def of(self, step: int) -> Caption:
        """Return the caption of a step.

        :param step: number of the step
        """
        number = int(np.searchsorted(self._starts, step, "right")) - 1
        episode = self._episodes[number]
        step_in_episode = step - episode.start
        return Caption(
            step,
            number,
            step_in_episode,
            (step_in_episode + 1) / len(episode),
            float(self._clip.rewards[step]),
            float(self._totals[step]),
            action_text(self._clip.actions[step], self._names),
            bool(self._clip.dones[step]),
        )


def action_text(action: Any, names: Sequence[str] | None = None) -> str:
    """Format an action: integers with their names, floats with two decimals.

    :param action: a number or an array of numbers
    :param names: names of integer actions
    """
    values = np.asarray(action).reshape(-1)
    if values.dtype.kind == "f":
        return " ".join(f"{value:.2f}" for value in values)
    if names is not None and len(values) == 1 and 0 <= values[0] < len(names):
        return f"{values[0]} {names[int(values[0])]}"
    return " ".join(str(int(value)) for value in values)


def reward_text(reward: float) -> str:
    """Format a reward with its sign; zero has none.

    :param reward: the number
    """
    return "0" if reward == 0 else f"{reward:+.4g}"


def reward_parts(reward: float) -> list[Text]:
    """Return the label and the colored value of a reward."""
    color = GAIN if reward > 0 else LOSS if reward < 0 else CLEAR
    return [("reward ", QUIET), (reward_text(reward), color)]


class Pen:
    """Draws text of one size.

    :param size: font size in pixels
    :param feature: name of the export, for errors
    """

    def __init__(self, size: int, feature: str) -> None:
        self.font: Any = require("PIL.ImageFont", feature).load_default(size)
        above, below = self.font.getmetrics()
        #: Height of a line.
        self.line = above + below

    def width(self, text: str) -> int:
        """Width of a text in pixels."""
        length: float = self.font.getlength(text)
        return round(length)

    def shorten(self, text: str, width: int) -> str:
        """Shorten a text to a width.

        :param text: the text
        :param width: available width in pixels
        """
        if self.width(text) <= width:
            return text
        kept = len(text)
        while kept and self.width(text[:kept].rstrip() + _ELLIPSIS) > width:
            kept -= 1
        return text[:kept].rstrip() + _ELLIPSIS if kept else ""

    def write(self, draw: Any, position: tuple[int, int], parts: Sequence[Text], width: int) -> None:
        """Draw texts side by side, shortened to a width.

        :param draw: where to draw
        :param position: left and top
        :param parts: texts and their colors
        :param width: available width in pixels
        """
        left, top = position
        used = 0
        for text, color in parts:
            shown = self.shorten(text, width - used)
            draw.text((left + used, top), shown, fill=color, font=self.font)
            used += self.width(shown)
            if shown != text:
                break

    def write_line(
        self, draw: Any, position: tuple[int, int], left: Sequence[Text], right: Sequence[Text], width: int, gap: int
    ) -> None:
        """Draw a line with texts at both ends. The texts at the left are shortened.

        :param draw: where to draw
        :param position: left and top
        :param left: texts at the left end
        :param right: texts at the right end
        :param width: width of the line in pixels
        :param gap: smallest distance between both
        """
        needed = sum(self.width(text) for text, _ in right)
        self.write(draw, position, left, width - needed - gap)
        self.write(draw, (position[0] + width - needed, position[1]), right, needed)


class Overlay:
    """The strip below a frame: the progress of the episode and two lines of text.

    :param width: width of the strip, at least ``MIN_WIDTH``
    :param feature: name of the export, for errors
    """

    def __init__(self, width: int, feature: str) -> None:
        self._image = require("PIL.Image", feature)
        self._draw = require("PIL.ImageDraw", feature)
        size = min(max(round(width * _FONT_SIZE_PER_WIDTH), _FONT_SIZES[0]), _FONT_SIZES[1])
        self._pen = Pen(size, feature)
        self._margin = size // 2
        self._bar = max(4, size // 10 * 2)
        self.width = width
        self.height = self._bar + 2 * self._pen.line + 2 * self._margin

    def draw(self, caption: Caption) -> NDArray[np.uint8]:
        """Return the strip of a step: shape ``(height, width, 3)``.

        :param caption: caption of the step
        """
        image = self._image.new("RGB", (self.width, self.height), BACKGROUND)
        draw = self._draw.Draw(image)
        draw.rectangle((0, 0, self.width - 1, self._bar - 1), fill=GROOVE)
        end = round(caption.progress * self.width)
        draw.rectangle((0, 0, max(end - 1, 0), self._bar - 1), fill=END if caption.done else ACCENT)
        where = [("episode ", QUIET), (str(caption.episode), CLEAR)]
        where += [("    step ", QUIET), (str(caption.step_in_episode), CLEAR)]
        self._line(draw, 0, where, [("return ", QUIET), (f"{caption.total:.5g}", CLEAR)])
        self._line(draw, 1, [("action ", QUIET), (caption.action, CLEAR)], reward_parts(caption.reward))
        return np.asarray(image)

    def _line(self, draw: Any, number: int, left: list[Text], right: list[Text]) -> None:
        top = self._bar + self._margin + number * self._pen.line
        width = self.width - 2 * self._margin
        self._pen.write_line(draw, (self._margin, top), left, right, width, self._margin)


class Canvas:
    """The image of a video: an enlarged frame with an overlay. Frames are enlarged by whole numbers.

    :param size: height and width of a frame
    :param scale: factor of enlargement; ``None`` for the least one that gives the shorter side 240 pixels
    :param overlay: whether to draw the overlay
    :param feature: name of the export, for errors
    """

    def __init__(self, size: tuple[int, int], scale: int | None, overlay: bool, feature: str) -> None:
        height, width = size
        self.scale = -(-_MIN_SIDE // min(size)) if scale is None else check_integer(feature, "scale", scale)
        shown_height, shown_width = height * self.scale, width * self.scale
        # Video codecs store colors of squares of two by two pixels, so both sides must be even.
        self.width = _even(max(shown_width, MIN_WIDTH) if overlay else shown_width)
        self._overlay = Overlay(self.width, feature) if overlay else None
        below = self._overlay.height if self._overlay is not None else 0
        self.height = _even(shown_height + below)
        left = (self.width - shown_width) // 2
        self._frame = slice(0, shown_height), slice(left, left + shown_width)
        self._below = slice(shown_height, shown_height + below)
        self._image = np.empty((self.height, self.width, 3), np.uint8)
        self._image[:] = BACKGROUND

    def draw(self, frame: NDArray[np.uint8], caption: Caption) -> NDArray[np.uint8]:
        """Return an image of shape ``(height, width, 3)``. The next call overwrites it.

        :param frame: shape ``(height, width, 3)`` of a frame
        :param caption: caption for the overlay
        """
        self._image[self._frame] = enlarge(frame, self.scale)
        if self._overlay is not None:
            self._image[self._below] = self._overlay.draw(caption)
        return self._image


def enlarge(frame: NDArray[np.uint8], scale: int) -> NDArray[np.uint8]:
    """Repeat every pixel in both directions.

    :param frame: shape ``(height, width, 3)``
    :param scale: factor of enlargement
    """
    return frame if scale == 1 else frame.repeat(scale, 0).repeat(scale, 1)


def _even(length: int) -> int:
    return length + length % 2
