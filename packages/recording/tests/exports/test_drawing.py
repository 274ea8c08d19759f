"""Frames are enlarged exactly, and texts fit their space."""

import numpy as np
import pytest

from sb3_extra_buffers.recording.exports.drawing import BACKGROUND, Canvas, Caption, Pen

CAPTION = Caption(7, 1, 7, 0.5, -1.0, 12.5, "3", False)


@pytest.mark.parametrize(("size", "scale"), [((84, 84), 3), ((10, 30), 24), ((240, 320), 1), ((239, 500), 2)])
def test_small_frames_are_enlarged_by_whole_numbers(size, scale):
    canvas = Canvas(size, None, True, "x")
    assert canvas.scale == scale
    frame = np.random.default_rng(0).integers(0, 256, (*size, 3), np.uint8)
    picture = canvas.draw(frame, CAPTION)
    assert picture.shape == (canvas.height, canvas.width, 3)
    shown = picture[: size[0] * scale, : size[1] * scale]
    for row in range(scale):
        for column in range(0, scale, 5):
            assert (shown[row::scale, column::scale] == frame).all()


def test_a_narrow_frame_is_centered():
    canvas = Canvas((100, 20), 1, True, "x")
    picture = canvas.draw(np.full((100, 20, 3), 99, np.uint8), CAPTION)
    assert canvas.width == 240
    assert (picture[:100, 110:130] == 99).all()
    assert (picture[:100, :110] == BACKGROUND).all()
    assert (picture[:100, 130:] == BACKGROUND).all()


@pytest.mark.parametrize("width", [240, 320, 1000])
def test_text_stays_inside_the_margins(width):
    long = Caption(123_456_789, 123_456, 123_456_789, 1.0, -1234.5, -123_456.0, "0.12 " * 200, True)
    strip = Canvas((240, width), 1, True, "x").draw(np.zeros((240, width, 3), np.uint8), long)[250:]
    margins = np.concatenate([strip[:, :5], strip[:, -5:]], axis=1)
    assert (margins == BACKGROUND).all()


def test_long_texts_are_shortened():
    pen = Pen(14, "x")
    text = "a rather long text"
    assert pen.shorten(text, pen.width(text)) == text
    for room in range(0, pen.width(text), 7):
        shown = pen.shorten(text, room)
        assert pen.width(shown) <= room
        assert shown == "" or (shown.endswith("…") and text.startswith(shown[:-1]))
