"""Numbers that are computed are those that numpy would have stored."""

import numpy as np
import pytest

from sb3_extra_buffers.arrays.indexing import CellNumbers

ROWS = np.array([5, 0, 5, 2])
ENVS = np.array([1, 0, 2, 2])


@pytest.mark.parametrize(
    "key",
    [
        0,
        5,
        -1,
        np.int64(3),
        (2,),
        (2, 1),
        (ROWS, ENVS),
        (ROWS, ENVS - 1),
        (ROWS - 6, ENVS),
        (ROWS.astype(np.uint8), ENVS.astype(np.int32)),
        (ROWS[:, np.newaxis], ENVS),
        (ROWS[:0], ENVS[:0]),
        ROWS,
        (ROWS,),
        (slice(1, 4), ENVS),
        slice(None, None, 2),
        Ellipsis,
        np.array([True, False, True, True, False, False]),
        (np.array([True, False, True, True, False, False]), 1),
        True,
        (None, 1),
    ],
)
def test_every_index_gives_what_it_gives_on_an_array(key):
    expected, found = np.arange(18).reshape(6, 3)[key], CellNumbers((6, 3))[key]
    np.testing.assert_array_equal(found, expected)
    assert np.shape(found) == np.shape(expected)
    assert np.asarray(found).dtype == np.int64


@pytest.mark.parametrize("key", [6, -7, (ROWS, ENVS + 1), (ROWS + 1, ENVS), (ROWS - 7, ENVS), (0, 0, 0), 1.5])
def test_what_numpy_refuses_is_refused(key):
    with pytest.raises(IndexError):
        CellNumbers((6, 3))[key]


@pytest.mark.parametrize("shape", [(7,), (2, 3, 4)])
def test_other_numbers_of_axes(shape):
    numbers, expected = CellNumbers(shape), np.arange(np.prod(shape)).reshape(shape)
    assert (len(numbers), numbers.ndim, numbers.size) == (len(expected), expected.ndim, expected.size)
    np.testing.assert_array_equal(numbers, expected)
    np.testing.assert_array_equal(numbers[1], expected[1])
    places = tuple(np.array([0, 1]) for _ in shape)
    np.testing.assert_array_equal(numbers[places], expected[places])


def test_arranged_otherwise():
    numbers, expected = CellNumbers((6, 3)), np.arange(18).reshape(6, 3)
    np.testing.assert_array_equal(numbers.swapaxes(0, 1), expected.T)
    np.testing.assert_array_equal(numbers.reshape((2, 9)), expected.reshape(2, 9))
    np.testing.assert_array_equal(numbers.reshape(-1), expected.reshape(-1))
