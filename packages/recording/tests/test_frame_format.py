"""Frames with channels first or last, found from the shape or given by the user."""

import numpy as np
import pytest

from sb3_extra_buffers.errors import ObservationError, ParameterError
from sb3_extra_buffers.recording import RecordBuffer

LAST = np.random.default_rng(0).integers(0, 256, (5, 6, 3)).astype(np.uint8)
FIRST = np.ascontiguousarray(LAST.transpose(2, 0, 1))


@pytest.mark.parametrize("method", ["auto", "none"])
def test_auto_accepts_both_orders_and_returns_channels_last(method):
    buffer = RecordBuffer((5, 6), 3, 4, compression_method=method)
    for frame in (LAST, FIRST, FIRST.transpose(1, 2, 0), LAST[::-1][::-1], LAST.tolist(), np.asfortranarray(LAST)):
        buffer.add(frame, 0, 0)
        assert buffer[-1].frame.tobytes() == LAST.tobytes()


def test_a_given_order_of_channels_is_enforced():
    for channels, good, wrong in (("last", LAST, FIRST), ("first", FIRST, LAST)):
        buffer = RecordBuffer((5, 6), 3, 4, channels=channels)
        buffer.add(good, 0, 0)
        with pytest.raises(ObservationError, match=rf"expected shape \({', '.join(map(str, good.shape))}\)\."):
            buffer.add(wrong, 0, 0)
        assert (buffer[0].frame == LAST).all()


def test_an_ambiguous_shape_needs_an_explicit_order():
    with pytest.raises(ParameterError, match="Use 'first' or 'last'"):
        RecordBuffer((3, 3), 3, 4)
    cube = np.arange(27, dtype=np.uint8).reshape(3, 3, 3)
    for channels, expected in (("last", cube), ("first", cube.transpose(1, 2, 0))):
        buffer = RecordBuffer((3, 3), 3, 4, channels=channels)
        buffer.add(cube, 0, 0)
        assert (buffer[0].frame == expected).all()


def test_shapes_with_two_equal_axes_are_not_ambiguous():
    buffer = RecordBuffer((3, 4), 3, 4)  # (3, 4, 3) is height, width, channels; (3, 3, 4) is channels, height, width
    last = np.arange(36, dtype=np.uint8).reshape(3, 4, 3)
    buffer.add(last, 0, 0)
    buffer.add(last.transpose(2, 0, 1), 0, 0)
    assert (buffer[0].frame == last).all()
    assert (buffer[1].frame == last).all()


@pytest.mark.parametrize("shape", [(5, 6), (5, 6, 1), (1, 5, 6)])
def test_one_channel_needs_no_axis(shape):
    frame = LAST[:, :, 0]
    buffer = RecordBuffer((5, 6), 1, 4)
    buffer.add(frame.reshape(shape), 0, 0)
    assert (buffer[0].frame[:, :, 0] == frame).all()
    assert buffer[0].frame.shape == (5, 6, 1)


def test_other_dtypes_are_accepted_if_every_value_can_be_restored():
    buffer = RecordBuffer((5, 6), 3, 4)
    for dtype in ("int64", "float32", "uint16"):
        buffer.add(LAST.astype(dtype), 0, 0)
        assert buffer[-1].frame.tobytes() == LAST.tobytes()
    halves = RecordBuffer((5, 6), 3, 4, ["float32", "float32"])
    halves.add(LAST / 2, 0, 0)
    with pytest.raises(ObservationError, match="values that float32 holds exactly"):
        halves.add(LAST / 3, 0, 0)
