"""Rewards, actions and features are stored as given, or refused."""

import math

import numpy as np
import pytest

from sb3_extra_buffers.errors import ObservationError
from sb3_extra_buffers.recording import FramelessRecordBuffer, RecordBuffer

FRAME = np.zeros((4, 4, 3), np.uint8)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_rewards_are_rounded_as_in_an_assignment(dtype):
    rewards = [0.1, 1, np.float32(0.3), np.array([0.7]), np.array(2.5), True, -0.0, math.inf, -math.inf, 1e4 / 3]
    buffer = FramelessRecordBuffer(size=20, dtypes=["uint8", dtype])
    for reward in rewards:
        buffer.add(None, reward, 0)
    expected = np.array([float(np.squeeze(reward)) for reward in rewards], dtype)
    assert buffer[:].rewards.tobytes() == expected.tobytes()


def test_a_nan_reward_is_kept():
    buffer = FramelessRecordBuffer(size=2)
    buffer.add(None, math.nan, 0)
    assert math.isnan(buffer[0].reward)


def test_integer_rewards_are_kept_exactly_or_refused():
    buffer = FramelessRecordBuffer(size=2, dtypes=["uint8", "int8"])
    buffer.add(None, 3.0, 0)
    for wrong in (0.5, 128):
        with pytest.raises(ObservationError, match="reward"):
            buffer.add(None, wrong, 0)
    assert buffer[:].rewards.tolist() == [3]


@pytest.mark.parametrize("wrong", [1e39, -1e39, 10**400, "1", [], [1, 2], None], ids=str)
def test_invalid_rewards_are_refused(wrong):
    buffer = FramelessRecordBuffer(size=2)
    with pytest.raises(ObservationError, match="reward"):
        buffer.add(None, wrong, 0)
    assert len(buffer) == 0


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
def test_the_first_action_sets_dtype_and_shape(first, dtype, shape):
    buffer = recorded([first])
    assert buffer.actions.dtype == dtype
    assert buffer[:].actions.shape == (1, *shape)
    assert np.array_equal(buffer[0].action, first)


def test_a_first_action_of_one_byte_does_not_limit_later_actions():
    assert recorded([np.uint8(3), np.int64(-1), 2**40])[:].actions.tolist() == [3, -1, 2**40]


def test_a_single_number_may_have_an_axis():
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
def test_a_later_action_that_does_not_fit_is_refused(first, later):
    buffer = recorded([first])
    with pytest.raises(ObservationError, match="action_dtype= and action_shape="):
        buffer.add(None, 0, later)
    assert len(buffer) == 1
    assert np.array_equal(buffer[0].action, first)


def test_dtype_and_shape_of_actions_can_be_given():
    buffer = recorded([1, 0.5, 0.1], action_dtype="np.float32", action_shape=())
    assert buffer[:].actions.tolist() == np.float32([1, 0.5, 0.1]).tolist()
    with pytest.raises(ObservationError, match=r"expected shape \(2,\)"):
        recorded([[1, 2, 3]], action_shape=2)
    assert recorded([[1, 2]], action_shape=2).actions.shape == (10, 2)


def test_after_a_reset_the_next_action_sets_dtype_and_shape():
    buffer = recorded([1, 2])
    buffer.reset()
    buffer.add(None, 0, [0.5, 1.5])
    assert buffer[:].actions.tolist() == [[0.5, 1.5]]


def test_features_of_one_dtype_are_a_table():
    buffer = FramelessRecordBuffer(size=3, dtypes=["uint8", "float32", "int16", np.int16])
    buffer.add(None, 0, 0, (1, -2))
    buffer.add(None, 0, 0, np.array([3, 4]))
    assert buffer.features.shape == (3, 2)
    assert buffer[:].features.tolist() == [[1, -2], [3, 4]]
    assert buffer[0].features.tolist() == [1, -2]


def test_features_of_several_dtypes_are_structured():
    buffer = FramelessRecordBuffer(size=3, dtypes=["uint8", "float32", bool, "np.float64", "int8"])
    for number in range(5):
        buffer.add(None, 0, 0, [number % 2, number / 3, -number])
    assert buffer.features.dtype.names == ("0", "1", "2")
    assert buffer[:].features.tolist() == [(False, 2 / 3, -2), (True, 1.0, -3), (False, 4 / 3, -4)]
    buffer.add(None, 0, 0, buffer[0].features)
    assert buffer[-1].features.tolist() == (False, 2 / 3, -2)


def test_one_feature_needs_no_list():
    buffer = FramelessRecordBuffer(size=3, dtypes=["uint8", "float32", "uint8"])
    buffer.add(None, 0, 0, 7)
    buffer.add(None, 0, 0, [8])
    buffer.add(None, 0, 0, np.array(9))
    assert buffer[:].features.tolist() == [[7], [8], [9]]


def test_floats_are_rounded_to_the_dtype_of_the_feature():
    buffer = FramelessRecordBuffer(size=3, dtypes=["uint8", "float32", "float32"])
    buffer.add(None, 0, 0, [0.1])
    assert buffer[0].features.tolist() == [float(np.float32(0.1))]


WRONG = {
    "a list in each": [[1, 2], [3, 4], [5, 6]],
    "a list in one": [1, 2, [3, 4]],
    "nothing in each": [[], [], []],
    "nothing in one": [1, 2, []],
    "a table": np.ones((3, 2)),
    "a list of lists of other lengths": [[1, 2], [3], [4]],
    "an array without axes": np.array(1.0),
    "words": {"health": 1, "ammo": 2, "armour": 3},
}


@pytest.mark.parametrize("kind", [RecordBuffer, FramelessRecordBuffer])
@pytest.mark.parametrize("dtypes", [["float32"] * 3, ["float32", "int16", "float64"]], ids=["a table", "structured"])
@pytest.mark.parametrize("case", WRONG)
def test_features_that_are_not_single_numbers_are_refused(kind, dtypes, case):
    buffer = kind((4, 4), 3, 2, ["uint8", "float32", *dtypes])
    for number in range(3):
        buffer.add(FRAME + number, number, number, [number, number, number])
    with pytest.raises(ObservationError, match="features"):
        buffer.add(FRAME + 99, 99, 99, WRONG[case])
    clip = buffer[:]
    assert clip.rewards.tolist() == clip.actions.tolist() == [1, 2]
    assert [list(row) for row in clip.features.tolist()] == [[1, 1, 1], [2, 2, 2]]
    assert clip.frames is None or clip.frames[:, 0, 0, 0].tolist() == [1, 2]
    assert (len(buffer), buffer.steps) == (2, 3)


@pytest.mark.parametrize("dtypes", [["int16"] * 2, ["int16", "float64"]], ids=["a table", "structured"])
def test_a_feature_may_be_an_array_of_one_number(dtypes):
    buffer = FramelessRecordBuffer(size=3, dtypes=["uint8", "float32", *dtypes])
    buffer.add(None, 0, 0, [np.array([1]), np.array([2])])
    assert list(buffer[0].features.tolist()) == [1, 2]
