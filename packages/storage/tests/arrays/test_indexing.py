"""Indices and views mean what they mean to numpy, whether they keep cells whole or reach into them."""

import pickle

import numpy as np
import pytest

from sb3_extra_buffers.arrays import CompressedArray
from sb3_extra_buffers.arrays.indexing import CellNumbers, has_arrays, picks_whole_cells
from sb3_extra_buffers.errors import ObservationError

ALL = slice(None)
PAIR = np.array([1, 0])


@pytest.mark.parametrize(
    ("key", "kept"),
    [
        (2, (2,)),
        (np.int64(-1), (-1,)),
        (slice(1, None, 2), (slice(1, None, 2),)),
        ((2, 1), (2, 1)),
        ((2, ALL), (2, ALL)),
        ((2, 1, ALL), (2, 1)),
        ((2, 1, ALL, ALL), (2, 1)),
        ((PAIR, PAIR, ALL), (PAIR, PAIR)),
        ((None, 2), (None, 2)),
        ((2, None, 1), (2, None, 1)),
        (..., (ALL, ALL)),
        ((2, ...), (2, ALL)),
        ((..., ALL), (ALL, ALL)),
        ((2, 1, ...), (2, 1)),
        (True, (True,)),
        ((), ()),
    ],
)
def test_an_index_that_keeps_cells_whole_is_reduced_to_the_leading_axes(key, kept):
    found = picks_whole_cells(key, 2, 4)
    assert len(found) == len(kept)
    assert all(a is b or a == b for a, b in zip(found, kept))


@pytest.mark.parametrize(
    "key",
    [
        (2, 1, 0),
        (2, 1, slice(0, 2)),
        (2, 1, None),
        (..., 0),
        (..., None),
        (ALL, ALL, PAIR),
        (2, ..., 1),
        np.ones((5, 3, 2), bool),
        (ALL, np.ones((3, 2), bool)),
        (2, 1, True),
    ],
)
def test_an_index_that_reaches_into_cells_is_left_to_numpy(key):
    assert picks_whole_cells(key, 2, 4) is None


@pytest.mark.parametrize("rest", [(ALL,), (...,), (ALL, ...)])
def test_a_mask_over_cells_and_what_is_in_them_reaches_into_cells_whatever_follows(rest):
    assert picks_whole_cells((np.ones((5, 3), bool), *rest), 1, 3) is None


@pytest.mark.parametrize("mask", [np.ones((5, 3), bool), [[True] * 3] * 5])
def test_a_mask_over_all_leading_axes_keeps_cells_whole(mask):
    assert picks_whole_cells((mask, ALL), 2, 3)[0] is mask


def test_only_arrays_and_lists_can_pick_a_cell_twice():
    assert not has_arrays((1, np.int32(2), ALL, None, True))
    assert has_arrays((1, [0, 0]))
    assert has_arrays((PAIR,))
    assert has_arrays((np.array([True, False]),))


def filled(shape=(4, 2), dtype=np.uint8, obs_shape=(3,), **storage):
    array = CompressedArray(shape, dtype, obs_shape, **storage)
    full = np.arange(array.size).reshape(array.shape).astype(dtype)
    array[...] = full
    return array, full


def swap_and_flatten(array):
    """What rollout buffers of Stable-Baselines3 do before they are read."""
    shape = array.shape if len(array.shape) > 2 else (*array.shape, 1)
    return array.swapaxes(0, 1).reshape(shape[0] * shape[1], *shape[2:])


@pytest.mark.parametrize(
    "key",
    [4, -5, (0, 2), (0, -3), (0, 0, 3), [0, 4], ([0], [2]), (0, 0, 0, 0), 1.5, "x", np.ones(3, bool), (..., ...), {}],
)
def test_an_index_that_numpy_refuses_is_refused_in_the_same_way(key):
    array, full = filled()
    with pytest.raises(IndexError):
        full[key]
    with pytest.raises(IndexError):
        array[key]
    with pytest.raises(IndexError):
        array[key] = 1
    assert (np.asarray(array) == full).all()


@pytest.mark.parametrize("key", [(slice(None), slice(None), slice(0, 0)), (slice(0, 0), 0, 0), (0, 0, []), (..., [])])
def test_an_index_into_cells_may_pick_nothing(key):
    array, full = filled()
    assert array[key].shape == full[key].shape
    assert array[key].dtype == full.dtype
    array[key] = 9
    assert (np.asarray(array) == full).all()


@pytest.mark.parametrize("rest", [(), (slice(None),), (...,)])
def test_a_mask_may_cover_cells_and_part_of_what_is_in_them(rest):
    array, full = filled((4,), obs_shape=(3, 2))
    mask = np.arange(12).reshape(4, 3) % 5 == 2
    assert (array[(mask, *rest)] == full[(mask, *rest)]).all()
    array[(mask, *rest)] = full[(mask, *rest)] = 99
    assert (np.asarray(array) == full).all()


def test_dots_that_stand_for_nothing_separate_arrays_as_in_numpy():
    array, full = filled((2, 2, 2), obs_shape=())
    key = (slice(None), 0, ..., [[0, 1, 0]])
    assert array[key].shape == full[key].shape == (1, 3, 2)
    assert (array[key] == full[key]).all()


def test_of_several_assignments_to_one_cell_the_last_one_stays():
    array, full = filled()
    for key in ([1, 1, 1], ([1, 1, 1], [0, 0, 0]), ([1, 1, 1], 0, [2, 2, 2])):
        value = np.arange(full[key].size).reshape(full[key].shape)
        array[key] = full[key] = value
        assert (np.asarray(array) == full).all()


def test_views_as_stable_baselines3_makes_them_read_the_same_cells():
    for obs_shape in ((), (3,), (2, 2)):
        array, full = filled((4, 2), obs_shape=obs_shape)
        view, expected = swap_and_flatten(array), swap_and_flatten(full)
        assert view.shape == expected.shape
        for key in (..., 5, [7, 0, 7], slice(1, 6, 2)):
            assert (view[key] == expected[key]).all()
        array[3] = 200
        assert (view[3] == 200).all()  # nothing was copied


@pytest.mark.parametrize("shape", [(8, 3), (-1, 3), (2, 2, 2, 3), (8, 1, 3), (4, 2, 3, 1), (4, -1, 3)])
def test_cells_take_any_shape_that_keeps_them_together(shape):
    array, full = filled()
    for view in (array.reshape(shape), array.reshape(*shape)):
        assert view.shape == full.reshape(shape).shape
        assert (np.asarray(view) == full.reshape(shape)).all()


@pytest.mark.parametrize("shape", [(24,), (-1,), (3, 8), (4, 6), (5, 3)])
def test_a_shape_that_would_cut_cells_is_refused_with_the_way_out(shape):
    array, _ = filled()
    with pytest.raises(ObservationError, match=r"keeps cells of \(3,\) together.*numpy.asarray\(\)"):
        array.reshape(shape)


@pytest.mark.parametrize("axes", [(0, 2), (0, -1), (1, -1)])
def test_an_axis_inside_the_cells_is_never_swapped_silently(axes):
    array, _ = filled()
    with pytest.raises((ValueError, IndexError)):
        array.swapaxes(*axes)


def test_views_share_their_cells_after_a_trip_through_pickle():
    array, _ = filled()
    array, view = pickle.loads(pickle.dumps((array, swap_and_flatten(array))))
    array[2] = 77
    assert (view[2] == 77).all()


def test_a_single_element_is_a_scalar_of_numpy():
    array = CompressedArray(4, np.float32)
    array[2] = 1.5
    assert type(array[2]) is np.float32
    assert array[2] == 1.5
    inside, _ = filled()
    assert type(inside[1, 0, 2]) is np.uint8
    assert inside[1, 0, 2] == 8


def test_iterating_gives_rows_and_ends():
    array, full = filled()
    rows = list(array)
    assert len(rows) == 4
    assert all((row == expected).all() for row, expected in zip(rows, full))


# Cell numbers, which are computed instead of stored.

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
def test_cell_numbers_are_those_of_an_array_of_numpy(key):
    expected, found = np.arange(18).reshape(6, 3)[key], CellNumbers((6, 3))[key]
    np.testing.assert_array_equal(found, expected)
    assert np.shape(found) == np.shape(expected)
    assert np.asarray(found).dtype == np.int64


@pytest.mark.parametrize("key", [6, -7, (ROWS, ENVS + 1), (ROWS + 1, ENVS), (ROWS - 7, ENVS), (0, 0, 0), 1.5])
def test_cell_numbers_refuse_what_numpy_refuses(key):
    with pytest.raises(IndexError):
        CellNumbers((6, 3))[key]


@pytest.mark.parametrize("shape", [(7,), (2, 3, 4)])
def test_cell_numbers_with_another_number_of_axes(shape):
    numbers, expected = CellNumbers(shape), np.arange(np.prod(shape)).reshape(shape)
    assert (len(numbers), numbers.ndim, numbers.size) == (len(expected), expected.ndim, expected.size)
    np.testing.assert_array_equal(numbers, expected)
    np.testing.assert_array_equal(numbers[1], expected[1])
    places = tuple(np.array([0, 1]) for _ in shape)
    np.testing.assert_array_equal(numbers[places], expected[places])


def test_cell_numbers_in_another_shape():
    numbers, expected = CellNumbers((6, 3)), np.arange(18).reshape(6, 3)
    np.testing.assert_array_equal(numbers.swapaxes(0, 1), expected.T)
    np.testing.assert_array_equal(numbers.reshape((2, 9)), expected.reshape(2, 9))
    np.testing.assert_array_equal(numbers.reshape(-1), expected.reshape(-1))
