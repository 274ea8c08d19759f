"""Frames stay what they are, and texts stay where there is room for them."""

import numpy as np
import pytest

from sb3_extra_buffers.recording.exports.canvas import Canvas
from sb3_extra_buffers.recording.exports.captions import Caption
from sb3_extra_buffers.recording.exports.drawing import BACKGROUND, Pen

CAPTION = Caption(7, 1, 7, 0.5, -1.0, 12.5, "3", False)


@pytest.mark.parametrize(("size", "scale"), [((84, 84), 3), ((10, 30), 24), ((240, 320), 1), ((239, 500), 2)])
def test_small_frames_are_enlarged_by_whole_numbers(size, scale):
    canvas = Canvas(size, None, True, "x")
    assert canvas.scale == scale
    frame = np.random.default_rng(0).integers(0, 256, (*size, 3), np.uint8)
    picture = canvas.picture(frame, CAPTION)
    assert picture.shape == (canvas.height, canvas.width, 3)
    shown = picture[: size[0] * scale, : size[1] * scale]
    for row in range(scale):
        for column in range(0, scale, 5):
            assert (shown[row::scale, column::scale] == frame).all()


def test_a_narrow_frame_stands_in_the_middle():
    canvas = Canvas((100, 20), 1, True, "x")
    picture = canvas.picture(np.full((100, 20, 3), 99, np.uint8), CAPTION)
    assert canvas.width == 240
    assert (picture[:100, 110:130] == 99).all()
    assert (picture[:100, :110] == BACKGROUND).all()
    assert (picture[:100, 130:] == BACKGROUND).all()


@pytest.mark.parametrize("width", [240, 320, 1000])
def test_nothing_is_written_across_the_edge_or_across_another_text(width):
    long = Caption(123_456_789, 123_456, 123_456_789, 1.0, -1234.5, -123_456.0, "0.12 " * 200, True)
    strip = Canvas((240, width), 1, True, "x").picture(np.zeros((240, width, 3), np.uint8), long)[250:]
    margins = np.concatenate([strip[:, :5], strip[:, -5:]], axis=1)
    assert (margins == BACKGROUND).all()


def test_texts_are_cut_where_there_is_no_room():
    pen = Pen(14, "x")
    text = "a rather long text"
    assert pen.fitting(text, pen.width(text)) == text
    for room in range(0, pen.width(text), 7):
        shown = pen.fitting(text, room)
        assert pen.width(shown) <= room
        assert shown == "" or (shown.endswith("…") and text.startswith(shown[:-1]))
