"""Actions come back as they were, whatever they are."""

import numpy as np
import pytest

from sb3_extra_buffers.errors import ObservationError
from sb3_extra_buffers.recording import FramelessRecordBuffer


def recorded(actions, **arguments):
    buffer = FramelessRecordBuffer(size=10, **arguments)
    for action in actions:
        buffer.add(None, 0, action)
    return buffer


@pytest.mark.parametrize(
    ("first", "dtype", "shape"),
    [
        (3, "int64", ()),
        (np.uint8(3), "int64", ()),
        (np.uint64(2**63), "uint64", ()),
        (np.int32([1, 2]), "int64", (2,)),
        (0.1, "float64", ()),
        (np.float32([0.1, 0.2, 0.3]), "float32", (3,)),
        (np.float16(0.5), "float16", ()),
        (True, "bool", ()),
        ([[1, 2], [3, 4]], "int64", (2, 2)),
        (np.array([5]), "int64", (1,)),
    ],
    ids=str,
)
def test_the_first_action_says_what_they_are(first, dtype, shape):
    buffer = recorded([first])
    assert buffer.actions.dtype == dtype
    assert buffer[:].actions.shape == (1, *shape)
    assert np.array_equal(buffer[0].action, first)


def test_a_byte_does_not_limit_those_that_follow():
    assert recorded([np.uint8(3), np.int64(-1), 2**40])[:].actions.tolist() == [3, -1, 2**40]


def test_one_number_with_and_without_an_axis():
    assert recorded([3, np.array([4]), [[5]]])[:].actions.tolist() == [3, 4, 5]
    assert recorded([[3], 4])[:].actions.tolist() == [[3], [4]]


@pytest.mark.parametrize(
    ("first", "later"),
    [
        (1, 0.5),
        (1, [1, 2]),
        (True, 2),
        (np.float32(0.5), 0.1),
        (np.uint64(1), -1),
        (0.5, 2**53 + 1),
        ([1, 2], [1, 2, 3]),
    ],
    ids=str,
)
def test_a_later_one_that_does_not_fit_is_refused_and_nothing_is_recorded(first, later):
    buffer = recorded([first])
    with pytest.raises(ObservationError, match="action_dtype= and action_shape="):
        buffer.add(None, 0, later)
    assert len(buffer) == 1
    assert np.array_equal(buffer[0].action, first)


def test_a_dtype_and_shape_can_be_asked_for():
    buffer = recorded([1, 0.5, 0.1], action_dtype="np.float32", action_shape=())
    assert buffer[:].actions.tolist() == np.float32([1, 0.5, 0.1]).tolist()
    with pytest.raises(ObservationError, match=r"expected shape \(2,\)"):
        recorded([[1, 2, 3]], action_shape=2)
    assert recorded([[1, 2]], action_shape=2).actions.shape == (10, 2)


def test_after_a_reset_the_next_one_decides():
    buffer = recorded([1, 2])
    buffer.reset()
    buffer.add(None, 0, [0.5, 1.5])
    assert buffer[:].actions.tolist() == [[0.5, 1.5]]
