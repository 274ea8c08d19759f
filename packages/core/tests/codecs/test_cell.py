"""A cell is a plain dtype and a positive count."""

import pickle

import numpy as np
import pytest

from sb3_extra_buffers.codecs import CellSpec
from sb3_extra_buffers.errors import ParameterError


@pytest.mark.parametrize("dtype", ["?", "u1", "<i2", ">f4", "g", np.float16, bool])
def test_it_survives_json_and_pickle(dtype):
    cell = CellSpec(dtype, np.int64(7))
    assert cell.nbytes == 7 * np.dtype(dtype).itemsize
    assert CellSpec.from_json(cell.to_json()) == cell == pickle.loads(pickle.dumps(cell))
    assert hash(CellSpec.from_json(cell.to_json())) == hash(cell)


@pytest.mark.parametrize("dtype", [object, "U3", "M8[s]", "c8", "V4", [("a", "u1")], ("u1", (3,))])
def test_dtypes_that_are_not_plain_numbers_are_refused(dtype):
    with pytest.raises(ParameterError, match="it must be a plain bool, integer or float dtype"):
        CellSpec(dtype, 1)


@pytest.mark.parametrize("count", [0, -1, 1.0, True, "3", None])
def test_counts_below_one_or_of_another_type_are_refused(count):
    with pytest.raises(ParameterError, match=f"count={count!r}"):
        CellSpec("u1", count)


def test_it_cannot_be_changed():
    with pytest.raises(AttributeError):
        CellSpec("u1", 3).count = 4
