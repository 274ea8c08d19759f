"""Bugs of the published package do not return."""

import numpy as np
import pytest

from sb3_extra_buffers.recording import (
    BaseRecordBuffer,
    FramelessRecordBuffer,
    RecordBuffer,
    force_alloc_mem,
)

FRAME = np.zeros((16, 16, 3), np.uint8)


def test_b8_the_documented_call_works_after_the_wrap():
    buffer = RecordBuffer((16, 16), 3, 5)
    for number in range(23):
        buffer.add(FRAME, 1.0, number)
        assert len(buffer) == min(number + 1, 5)
    assert buffer[:].actions.tolist() == [18, 19, 20, 21, 22]


def test_b9_buffers_without_features_can_be_created_and_filled():
    for buffer in (FramelessRecordBuffer(), FramelessRecordBuffer(size=10), RecordBuffer((16, 16), 3, 10)):
        force_alloc_mem(buffer)
        assert buffer.features.shape == (buffer.max_size, 0)
        buffer.add(FRAME, 0.0, 0)
        assert len(buffer) == 1


def test_b10_a_record_buffer_has_the_base_class_and_refuses_dictionaries():
    buffer = RecordBuffer((16, 16), 3, 5)
    assert isinstance(buffer, BaseRecordBuffer)
    with pytest.raises(ValueError, match="frame is an array of object"):
        buffer.add({"image": FRAME}, 0.0, 0)
    assert len(buffer) == 0


def test_b15_dtypes_may_be_text():
    buffer = RecordBuffer((16, 16), 3, 5, ["np.uint8", "numpy.float32", "uint8", "np.uint8"])
    assert buffer.features.dtype == np.uint8
    buffer.add(FRAME, 0.0, 0, [1, 255])
    assert buffer[0].features.tolist() == [1, 255]


@pytest.mark.parametrize(
    "actions",
    [
        [3, 256, 70_000, -5, 2**62],
        [0.5, -1e300, float("inf")],
        [[0.25, -1.5], [3.5, 4.0]],
        [True, False],
        [[1, 2], [3, 4]],
    ],
    ids=str,
)
def test_b15_any_integer_float_or_vector_is_an_action(actions):
    buffer = RecordBuffer((16, 16), 3, 10)
    for action in actions:
        buffer.add(FRAME, 0.0, action)
    assert buffer[:].actions.tolist() == actions
