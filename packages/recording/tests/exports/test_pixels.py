"""Frames are shown by their channels and dtype."""

import numpy as np
import pytest

from sb3_extra_buffers.errors import ObservationError, ParameterError
from sb3_extra_buffers.recording.exports import Pixels, label_colors


def noise(channels, dtype=np.uint8, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (2, 4, 5, channels)).astype(dtype)


def grey(values):
    return np.stack([values] * 3, -1)


def test_three_channels_are_rgb():
    frames = noise(3)
    assert (Pixels("x").colors(frames) == frames).all()


def test_one_channel_is_grey():
    frames = noise(1)
    assert (Pixels("x").colors(frames) == grey(frames[..., 0])).all()


@pytest.mark.parametrize("channels", [2, 4, 9])
def test_the_newest_frame_of_a_stack_is_shown(channels):
    frames = noise(channels)
    assert (Pixels("x").colors(frames) == grey(frames[..., -1])).all()
    assert (Pixels("x", "newest").colors(frames) == grey(frames[..., -1])).all()


def test_all_channels_are_shown_side_by_side():
    frames = noise(4)
    shown = Pixels("x", "all").colors(frames)
    assert shown.shape == (2, 4, 20, 3)
    for channel in range(4):
        assert (shown[:, :, 5 * channel : 5 * channel + 5] == grey(frames[..., channel])).all()


@pytest.mark.parametrize(
    ("channels", "picked"),
    [("rgb", [0, 1, 2]), ((3, 0, 1), [3, 0, 1]), (2, [2, 2, 2]), (-1, [3, 3, 3]), ([1], [1, 1, 1])],
)
def test_channels_can_be_selected(channels, picked):
    frames = noise(4)
    assert (Pixels("x", channels).colors(frames) == frames[..., picked]).all()


@pytest.mark.parametrize("channels", [4, -5, (0, 1), (0, 1, 4), "red", ()])
def test_invalid_channels_are_refused(channels):
    with pytest.raises(ParameterError, match="frames have 4 channels"):
        Pixels("to_video", channels).colors(noise(4))


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.uint16])
def test_labels_are_shown_in_their_colors(dtype):
    labels = np.arange(12, dtype=dtype).reshape(1, 3, 4, 1)
    assert (Pixels("x", palette="labels").colors(labels) == label_colors()[labels[..., 0]]).all()


def test_labels_of_the_newest_frame_of_a_stack_are_shown():
    labels = noise(3)
    assert (Pixels("x", palette="labels").colors(labels) == label_colors()[labels[..., 2]]).all()


def test_bools_can_be_labels():
    labels = noise(1) > 100
    assert (Pixels("x", palette="labels").colors(labels) == label_colors()[labels[..., 0].astype(int)]).all()


def test_large_and_negative_labels_reuse_colors_but_not_the_background():
    labels = np.array([256, 511, -1, 255, 256 + 254], np.int64).reshape(1, 1, 5, 1)
    expected = label_colors()[[1, 1, 254, 255, 255]]
    assert (Pixels("x", palette="labels").colors(labels)[0, 0] == expected).all()


def test_a_palette_can_be_given():
    palette = [[0, 0, 0], [255, 0, 7]]
    frames = noise(1) % 2
    assert (Pixels("x", palette=palette).colors(frames) == np.array(palette)[frames[..., 0]]).all()


def test_a_label_without_a_color_is_an_error():
    with pytest.raises(ObservationError, match=r"a pixel is 7, expected labels from 0 to 1"):
        Pixels("x", palette=[[0, 0, 0], [1, 1, 1]]).colors(np.full((1, 2, 2, 1), 7, np.uint8))
    with pytest.raises(ObservationError, match="-1"):
        Pixels("x", palette=[[0, 0, 0], [1, 1, 1]]).colors(np.full((1, 2, 2, 1), -1, np.int8))


@pytest.mark.parametrize("palette", ["jet", [1, 2, 3], [[1, 2, 300]], [[0.5, 0, 0]], np.zeros((0, 3), int)])
def test_invalid_palettes_are_refused(palette):
    with pytest.raises(ParameterError, match="palette"):
        Pixels("x", palette=palette).colors(noise(1))


def test_floats_and_rgb_frames_are_refused_as_labels():
    with pytest.raises(ObservationError, match="integers"):
        Pixels("x", palette="labels").colors(noise(1, np.float32))
    with pytest.raises(ParameterError, match="one channel"):
        Pixels("x", "rgb", palette="labels").colors(noise(4))


@pytest.mark.parametrize(
    ("dtype", "values", "shown"),
    [
        (np.float32, [0, 0.5, 1, 2, -1], [0, 128, 255, 255, 0]),
        (np.float64, [np.nan, np.inf, -np.inf, 0.2, 1], [0, 255, 0, 51, 255]),
        (np.bool_, [0, 1, 1, 0, 1], [0, 255, 255, 0, 255]),
        (np.uint16, [0, 257, 65535, 32768, 1], [0, 1, 255, 128, 0]),
        (np.int8, [-128, -1, 127, 0, 64], [0, 127, 255, 128, 192]),
    ],
)
def test_black_and_white_are_the_limits_of_the_dtype(dtype, values, shown):
    frames = np.array(values).astype(dtype).reshape(1, 1, 5, 1)
    assert Pixels("x").colors(frames)[0, 0, :, 1].tolist() == shown


def test_the_value_range_can_be_given():
    frames = np.array([[-10, 0, 10, 30]], np.int16).reshape(1, 1, 4, 1)
    assert Pixels("x", value_range=(-10, 10)).colors(frames)[0, 0, :, 0].tolist() == [0, 128, 255, 255]
    assert Pixels("x", value_range=(0, 127)).colors(np.full((1, 1, 1, 1), 127, np.uint8)).max() == 255
    with pytest.raises(ParameterError, match="value_range"):
        Pixels("x", value_range=(1, 1)).colors(frames)


def test_colors_of_labels_are_distinct_and_fixed():
    table = label_colors()
    assert len({tuple(color) for color in table.tolist()}) == 256
    assert table[:4].tolist() == [[0, 0, 0], [242, 85, 85], [29, 76, 191], [207, 255, 140]]
    with pytest.raises(ValueError, match="read-only"):
        table[0] = 1
