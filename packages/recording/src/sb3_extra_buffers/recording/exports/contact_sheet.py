"""``write_contact_sheet``: a recording at a glance, as one picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.recording.exports.batches import chosen_steps
from sb3_extra_buffers.recording.exports.canvas import enlarged
from sb3_extra_buffers.recording.exports.captions import Caption, Captions, reward_text
from sb3_extra_buffers.recording.exports.drawing import BACKGROUND, CLEAR, END, QUIET, Pen, reward_color
from sb3_extra_buffers.recording.exports.extras import require
from sb3_extra_buffers.recording.exports.files import AnyPath, new_file
from sb3_extra_buffers.recording.exports.pixels import Channels, Palette, Pixels
from sb3_extra_buffers.recording.recording import Recording

_NAME = "contact_sheet"
#: Frames that are narrower are enlarged until there is room for a caption.
_TILE_WIDTH = 160
_GAP = 8


def write_contact_sheet(
    recording: Recording,
    path: AnyPath,
    *,
    columns: int = 6,
    rows: int = 4,
    steps: range | None = None,
    scale: int | None = None,
    channels: Channels = "auto",
    palette: Palette = None,
    value_range: tuple[float, float] | None = None,
    action_names: Sequence[str] | None = None,
) -> Path:
    """
    Write some steps of a recording side by side as a PNG: the first, the last, and others at even distances.

    Below each frame stand its step, its reward, its episode and its action. Needs the extra ``video``.

    :param recording: what to show
    :param path: the file, which ends in ``.png``
    :param columns: how many frames there are side by side, at the most
    :param rows: how many rows there are, at the most
    :param steps: consecutive steps, such as one of ``recording.episodes``; ``None`` for all
    :param scale: how many times larger frames are shown, a whole number; ``None`` for what captions need
    :param channels: which channels are shown, and as what: see :class:`~sb3_extra_buffers.recording.exports.Pixels`
    :param palette: ``"labels"`` or an array of colours, if values are labels
    :param value_range: the values that are black and white, if the dtype does not say it
    :param action_names: a name for each action, if actions are integers
    """
    target = Path(path)
    if target.suffix.lower() != ".png":
        raise ParameterError(_NAME, "path", str(path), "it must end in .png")
    for name, value, least in (("columns", columns, 1), ("rows", rows, 1), ("scale", scale or 1, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ParameterError(_NAME, name, value, f"it must be an integer of at least {least}")
    shown = chosen_steps(recording, steps, _NAME, frames=True)
    pixels = Pixels(_NAME, channels, palette, value_range)
    captions = Captions(recording, action_names)
    tiles = [(_frame(recording, step, pixels), captions.of(step)) for step in evenly(shown, columns * rows)]
    sheet = _draw(tiles, min(columns, len(tiles)), scale)
    with new_file(target, _NAME) as file:
        sheet.save(file, format="PNG")
    return target


def evenly(steps: range, count: int) -> list[int]:
    """Some of the steps, the first and the last among them, at distances that differ by one at the most.

    :param steps: what to choose from
    :param count: how many to choose; fewer if there are not so many
    """
    places = np.linspace(0, len(steps) - 1, min(count, len(steps))).round().astype(int)
    return [steps[place] for place in places.tolist()]


def _frame(recording: Recording, step: int, pixels: Pixels) -> NDArray[np.uint8]:
    frames = recording.read(step, step + 1).frames
    assert frames is not None
    shown: NDArray[np.uint8] = pixels.colors(frames)[0]
    return shown


def _draw(tiles: list[tuple[NDArray[np.uint8], Caption]], columns: int, scale: int | None) -> Any:
    height, width = tiles[0][0].shape[:2]
    factor = scale or -(-_TILE_WIDTH // width)
    tall, wide = height * factor, max(width * factor, _TILE_WIDTH)
    pen = Pen(12, _NAME)
    below = 2 * pen.line + _GAP
    rows = -(-len(tiles) // columns)
    size = columns * (wide + _GAP) + _GAP, rows * (tall + below + _GAP) + _GAP
    images = require("PIL.Image", _NAME)
    sheet = images.new("RGB", size, BACKGROUND)
    draw = require("PIL.ImageDraw", _NAME).Draw(sheet)
    for number, (colors, caption) in enumerate(tiles):
        left = _GAP + number % columns * (wide + _GAP)
        top = _GAP + number // columns * (tall + below + _GAP)
        sheet.paste(images.fromarray(enlarged(colors, factor)), (left + (wide - width * factor) // 2, top))
        _write(draw, pen, (left, top + tall + _GAP // 2), wide, caption)
    return sheet


def _write(draw: Any, pen: Pen, place: tuple[int, int], width: int, caption: Caption) -> None:
    left, top = place
    reward = [("reward ", QUIET), (reward_text(caption.reward), reward_color(caption.reward))]
    needed = sum(pen.width(text) for text, _ in reward)
    pen.write(draw, place, [("step ", QUIET), (str(caption.step), CLEAR)], width - needed - _GAP)
    pen.write(draw, (left + width - needed, top), reward, needed)
    where = [("episode ", QUIET), (f"{caption.episode}", CLEAR), ("    action ", QUIET), (caption.action, CLEAR)]
    end = [("  end", END)] if caption.done else []
    pen.write(draw, (left, top + pen.line), [*where, *end], width)
