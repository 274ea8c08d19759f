"""Features of one dtype make a table, those of several a structured array."""

import numpy as np
import pytest

from sb3_extra_buffers.errors import ObservationError
from sb3_extra_buffers.recording import FramelessRecordBuffer, RecordBuffer

FRAME = np.zeros((4, 4, 3), np.uint8)


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
def test_features_that_are_no_single_numbers_are_refused_and_the_recording_stays_as_it_was(kind, dtypes, case):
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
def test_a_number_in_an_array_of_its_own_is_a_number(dtypes):
    buffer = FramelessRecordBuffer(size=3, dtypes=["uint8", "float32", *dtypes])
    buffer.add(None, 0, 0, [np.array([1]), np.array([2])])
    assert list(buffer[0].features.tolist()) == [1, 2]
