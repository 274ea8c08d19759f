"""A value is stored as it is, or refused: nothing wraps, is clipped or loses its fraction in silence."""

import numpy as np
import pytest

from sb3_extra_buffers.arrays import fit
from sb3_extra_buffers.arrays.casting import narrow
from sb3_extra_buffers.errors import ObservationError


def fitted(value, dtype):
    return fit("Owner", "obs", value, np.dtype(dtype))


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        ([0, 255], np.uint8),
        ([-128, 127], np.int8),
        ([0.0, 3.0], np.int64),
        ([True, False], np.uint8),
        ([0, 1], np.bool_),
        ([2**63 - 1, -(2**63)], np.int64),
        (np.array([2**64 - 1], np.uint64), np.uint64),
        (np.array([5, 7], np.uint64), np.int8),
        ([1, 2], np.float16),
        ([0.5, -0.0, np.inf, -np.inf], np.float32),
        (np.array([1, 2], ">i4"), np.int32),
        (7, np.uint8),
    ],
)
def test_what_fits_keeps_its_values_and_its_shape(value, dtype):
    found = fitted(value, dtype)
    assert found.dtype == dtype
    assert found.shape == np.shape(value)
    assert (found == np.asarray(value)).all()


def test_an_array_of_the_right_dtype_is_not_copied():
    array = np.arange(6, dtype=np.int16)[::2]
    assert fitted(array, np.int16) is array


def test_nan_stays_nan_and_a_float_is_rounded_to_a_narrower_one():
    found = fitted([np.nan, 0.1], np.float32)
    assert np.isnan(found[0])
    assert found[1] == np.float32(0.1)


@pytest.mark.parametrize(
    ("value", "dtype", "first", "allowed"),
    [
        ([3, 256, 300], np.uint8, "256", "integers from 0 to 255"),
        ([-1], np.uint8, "-1", "integers from 0 to 255"),
        ([128], np.int8, "128", "integers from -128 to 127"),
        ([0.5], np.int64, "0.5", "integers from"),
        ([1.0, np.nan], np.uint8, "nan", "integers from 0 to 255"),
        ([np.inf], np.int32, "inf", "integers from"),
        ([2.0**63], np.int64, "9.22", "integers from"),
        ([2.0**64], np.uint64, "1.84", "integers from"),
        (np.array([2**63], np.uint64), np.int64, "9223372036854775808", "integers from"),
        ([2], np.bool_, "2", "0 or 1"),
        ([0.5], np.bool_, "0.5", "0 or 1"),
        ([1e39], np.float32, r"1e\+39", "values up to 3.40"),
        ([70_000], np.float16, "70000", "values up to 65504"),
        (300, np.uint8, "300", "integers from 0 to 255"),
    ],
)
def test_what_does_not_fit_is_refused_by_value_and_range(value, dtype, first, allowed):
    with pytest.raises(ObservationError, match=f"Owner: obs is .* with the value {first}.*{allowed}"):
        fitted(value, dtype)


def test_the_error_counts_what_does_not_fit():
    with pytest.raises(ObservationError, match=r"the value 256 in it \(2 do not fit\)"):
        fitted([[3, 256], [300, 4]], np.uint8)


@pytest.mark.parametrize("value", ["x", [None], [1j], np.array(["2020"], "M8[D]"), [object()]])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(ObservationError, match="expected numbers"):
        fitted(value, np.uint8)


def test_a_tensor_is_read_without_knowing_torch():
    class Tensor:
        def detach(self):
            return self

        def cpu(self):
            return self

        def numpy(self):
            return np.array([1.0, 2.0])

    assert fitted(Tensor(), np.uint8).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("values", "wide", "stored"),
    [
        ([0, 255], np.int64, np.uint8),
        ([-1, 1], np.int64, np.int8),
        ([0.5, -0.0, np.inf, -np.inf, np.nan], np.float64, np.float16),
        ([0, 1], np.uint8, np.bool_),
    ],
)
def test_narrow_keeps_what_can_be_restored_bit_by_bit(values, wide, stored):
    array = np.array(values, wide)
    found = narrow("Owner", "obs", array, np.dtype(stored))
    assert found.dtype == stored
    assert found.astype(wide).tobytes() == array.tobytes()


@pytest.mark.parametrize(
    ("values", "wide", "stored"),
    [
        ([0, 256], np.int64, np.uint8),
        ([-1], np.int64, np.uint8),
        ([0.1], np.float64, np.float32),
        ([1e39], np.float64, np.float32),
        ([2], np.uint8, np.bool_),
        ([2**24 + 1], np.int64, np.float32),
        ([-0.0], np.float32, np.int8),
    ],
)
def test_narrow_refuses_what_cannot_be_restored_and_names_the_way_out(values, wide, stored):
    with pytest.raises(ObservationError, match=r"obs is .*Leave dtypes out: the space decides"):
        narrow("Owner", "obs", np.array(values, wide), np.dtype(stored))


@pytest.mark.parametrize("layout", ["scalar", "broadcast", "transposed", "strided"])
def test_narrow_checks_arrays_of_every_layout(layout):
    wide = np.array([[1, 2, 300], [4, 5, 6]])
    array = {
        "scalar": np.array(300),
        "broadcast": np.broadcast_to(wide[0], (4, 3)),
        "transposed": wide.T,
        "strided": wide[:, ::2],
    }[layout]
    with pytest.raises(ObservationError, match="with the value 300 in it"):
        narrow("Owner", "obs", array, np.dtype(np.uint8))
    sound = np.where(array == 300, 7, array)
    assert (narrow("Owner", "obs", sound, np.dtype(np.uint8)) == sound).all()
