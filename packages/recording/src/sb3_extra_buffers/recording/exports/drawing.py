"""Text on images: fonts, colours, and texts that fit."""

from __future__ import annotations

from typing import Any

from sb3_extra_buffers.recording.exports.extras import require

Color = tuple[int, int, int]

BACKGROUND: Color = (20, 22, 26)
GROOVE: Color = (52, 57, 66)
QUIET: Color = (140, 148, 160)
CLEAR: Color = (242, 244, 247)
GAIN: Color = (74, 222, 128)
LOSS: Color = (248, 113, 113)
ACCENT: Color = (96, 165, 250)
END: Color = (251, 191, 36)

#: What stands for the rest of a text that is too long.
_REST = "…"


class Pen:
    """Writes texts of one size.

    :param size: of the letters, in pixels
    :param feature: what writes, for the error
    """

    def __init__(self, size: int, feature: str) -> None:
        self.font: Any = require("PIL.ImageFont", feature).load_default(size)
        above, below = self.font.getmetrics()
        #: From one line to the next.
        self.line = above + below

    def width(self, text: str) -> int:
        """Of a text, in pixels."""
        length: float = self.font.getlength(text)
        return round(length)

    def fitting(self, text: str, width: int) -> str:
        """As much of a text as there is room for.

        :param text: the text
        :param width: the room, in pixels
        """
        if self.width(text) <= width:
            return text
        kept = len(text)
        while kept and self.width(text[:kept].rstrip() + _REST) > width:
            kept -= 1
        return text[:kept].rstrip() + _REST if kept else ""

    def write(self, draw: Any, place: tuple[int, int], parts: list[tuple[str, Color]], room: int) -> int:
        """Write texts one behind the other, as far as there is room. What they took is returned.

        :param draw: where to write
        :param place: left end and upper edge
        :param parts: texts and their colours
        :param room: width that they may take
        """
        left, top = place
        taken = 0
        for text, color in parts:
            shown = self.fitting(text, room - taken)
            draw.text((left + taken, top), shown, fill=color, font=self.font)
            taken += self.width(shown)
            if shown != text:
                break
        return taken


def reward_color(reward: float) -> Color:
    """Of a gain, of a loss, or of neither."""
    return GAIN if reward > 0 else LOSS if reward < 0 else CLEAR
