"""A cell is a plain dtype and a positive count."""

import pickle

import numpy as np
import pytest

from sb3_extra_buffers.codecs import CellSpec
from sb3_extra_buffers.errors import CellMismatchError, ParameterError


@pytest.mark.parametrize("dtype", ["?", "u1", "<i2", ">f4", "g", np.float16, bool])
def test_it_survives_json_and_pickle(dtype):
    cell = CellSpec(dtype, np.int64(7))
    assert cell.nbytes == 7 * np.dtype(dtype).itemsize
    assert CellSpec.from_json(cell.to_json()) == cell == pickle.loads(pickle.dumps(cell))
    assert hash(CellSpec.from_json(cell.to_json())) == hash(cell)


@pytest.mark.parametrize("dtype", [object, None, "foo", "U3", "M8[s]", "c8", "V4", [("a", "u1")], ("u1", (3,))])
def test_dtypes_that_are_not_plain_numbers_are_refused(dtype):
    with pytest.raises(
        ParameterError, match=r"it must (be a plain bool, integer or float dtype|name a dtype of numpy)"
    ):
        CellSpec(dtype, 1)


@pytest.mark.parametrize("count", [0, -1, 1.0, True, "3", None])
def test_counts_below_one_or_of_another_type_are_refused(count):
    with pytest.raises(ParameterError, match=f"count={count!r}"):
        CellSpec("u1", count)


def test_it_cannot_be_changed():
    with pytest.raises(AttributeError):
        CellSpec("u1", 3).count = 4


def test_a_buffer_is_seen_as_a_cell_if_it_has_its_dtype_or_is_bytes():
    cell = CellSpec(np.float32, 3)
    array = np.array([1, 2, 3], np.float32)
    for buffer in (array, array.view(np.uint8), array.tobytes(), memoryview(array)):
        assert bytes(cell.view("me", "x", buffer)) == array.tobytes()


@pytest.mark.parametrize(
    ("buffer", "message"),
    [
        (np.zeros(3, np.int32), "x is an array of int32, expected 3 x float32 or its bytes as uint8"),
        (np.zeros(3, ">f4"), "x is an array of >f4"),
        (np.zeros(4, np.float32), r"x is 16 bytes long, expected 12 bytes \(3 x float32\)"),
        ([1, 2, 3], "x is an object of type list, expected bytes"),
    ],
)
def test_what_is_no_such_cell_is_refused(buffer, message):
    with pytest.raises(CellMismatchError, match=message):
        CellSpec("<f4", 3).view("me", "x", buffer)
