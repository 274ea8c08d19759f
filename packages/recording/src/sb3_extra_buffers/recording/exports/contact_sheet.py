"""``write_contact_sheet``: an image with frames of a recording."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.recording.casting import check_integer
from sb3_extra_buffers.recording.exports.batches import select_steps
from sb3_extra_buffers.recording.exports.drawing import (
    BACKGROUND,
    CLEAR,
    END,
    QUIET,
    Caption,
    Captions,
    Pen,
    enlarge,
    reward_parts,
)
from sb3_extra_buffers.recording.exports.extras import require
from sb3_extra_buffers.recording.exports.files import AnyPath, new_file
from sb3_extra_buffers.recording.exports.pixels import Channels, Palette, Pixels
from sb3_extra_buffers.recording.protocol import Recording

_NAME = "contact_sheet"
#: Narrower frames are enlarged, so that there is room for a caption.
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
    Write evenly spaced steps of a recording, the first and the last included, side by side as a PNG.

    Below each frame are its step, reward, episode and action. Needs the extra ``video``.

    :param recording: the recording
    :param path: the file; it must end in ``.png``
    :param columns: largest number of columns
    :param rows: largest number of rows
    :param steps: consecutive steps, such as one of ``recording.episodes``; ``None`` for all
    :param scale: factor of enlargement, an integer; ``None``: large enough for the captions
    :param channels: channels to show: see :class:`~sb3_extra_buffers.recording.exports.Pixels`
    :param palette: ``"labels"`` or an array of colors, if values are labels
    :param value_range: values shown as black and white, if the dtype does not define them
    :param action_names: names of integer actions
    """
    target = Path(path)
    if target.suffix.lower() != ".png":
        raise ParameterError(_NAME, "path", str(path), "it must end in .png")
    for name, value in (("columns", columns), ("rows", rows), ("scale", scale or 1)):
        check_integer(_NAME, name, value)
    shown = select_steps(recording, steps, _NAME, frames=True)
    pixels = Pixels(_NAME, channels, palette, value_range)
    captions = Captions(recording, action_names)
    tiles = [(_frame(recording, step, pixels), captions.of(step)) for step in evenly_spaced(shown, columns * rows)]
    sheet = _draw(tiles, min(columns, len(tiles)), scale)
    with new_file(target, _NAME) as file:
        sheet.save(file, format="PNG")
    return target


def evenly_spaced(steps: range, count: int) -> list[int]:
    """Select steps, the first and the last included, at distances that differ by at most one.

    :param steps: steps to select from
    :param count: number of steps to select, if there are as many
    """
    indices = np.linspace(0, len(steps) - 1, min(count, len(steps))).round().astype(int)
    return [steps[index] for index in indices.tolist()]


def _frame(recording: Recording, step: int, pixels: Pixels) -> NDArray[np.uint8]:
    frames = recording.read(step, step + 1).frames
    assert frames is not None
    shown: NDArray[np.uint8] = pixels.colors(frames)[0]
    return shown


def _draw(tiles: list[tuple[NDArray[np.uint8], Caption]], columns: int, scale: int | None) -> Any:
    frame_height, frame_width = tiles[0][0].shape[:2]
    factor = scale or -(-_TILE_WIDTH // frame_width)
    height, width = frame_height * factor, max(frame_width * factor, _TILE_WIDTH)
    pen = Pen(12, _NAME)
    below = 2 * pen.line + _GAP
    rows = -(-len(tiles) // columns)
    size = columns * (width + _GAP) + _GAP, rows * (height + below + _GAP) + _GAP
    images = require("PIL.Image", _NAME)
    sheet = images.new("RGB", size, BACKGROUND)
    draw = require("PIL.ImageDraw", _NAME).Draw(sheet)
    for number, (colors, caption) in enumerate(tiles):
        left = _GAP + number % columns * (width + _GAP)
        top = _GAP + number // columns * (height + below + _GAP)
        sheet.paste(images.fromarray(enlarge(colors, factor)), (left + (width - frame_width * factor) // 2, top))
        _draw_caption(draw, pen, (left, top + height + _GAP // 2), width, caption)
    return sheet


def _draw_caption(draw: Any, pen: Pen, position: tuple[int, int], width: int, caption: Caption) -> None:
    left, top = position
    step = [("step ", QUIET), (str(caption.step), CLEAR)]
    pen.write_line(draw, position, step, reward_parts(caption.reward), width, _GAP)
    where = [("episode ", QUIET), (f"{caption.episode}", CLEAR), ("    action ", QUIET), (caption.action, CLEAR)]
    end = [("  end", END)] if caption.done else []
    pen.write(draw, (left, top + pen.line), [*where, *end], width)
