"""How frames lie in an observation, and how a stack gives itself away."""

import numpy as np
import pytest

from sb3_extra_buffers.frames import FrameGeometry, stacks, whole


def as_row(observation):
    return np.ascontiguousarray(observation).reshape(-1).view(np.uint8)


def test_first_and_last_axis():
    frames = np.arange(4 * 2 * 3, dtype=np.uint8).reshape(4, 2, 3)
    first, last = FrameGeometry(4, 1, 6), FrameGeometry(4, 6, 1)
    np.testing.assert_array_equal(first.split(as_row(frames)[np.newaxis])[0], frames.reshape(4, 6))
    np.testing.assert_array_equal(last.split(as_row(frames.transpose(1, 2, 0))[np.newaxis])[0], frames.reshape(4, 6))


@pytest.mark.parametrize(
    "geometry", [FrameGeometry(4, 1, 12), FrameGeometry(3, 5, 2), whole(20), FrameGeometry(2, 7, 8)]
)
def test_joining_undoes_splitting(geometry):
    rows = np.random.default_rng(0).integers(0, 256, (5, geometry.row_nbytes), np.uint8)
    back = np.zeros_like(rows)
    geometry.join(geometry.split(rows), back)
    np.testing.assert_array_equal(back, rows)
    assert geometry.row_nbytes == geometry.depth * geometry.frame_nbytes


@pytest.mark.parametrize(
    ("shape", "itemsize", "expected"),
    [
        ((4, 84, 84), 1, [(4, 1, 7056), (2, 1, 14112)]),
        ((84, 84, 4), 1, [(4, 7056, 1), (2, 7056, 2)]),
        ((84, 84, 1), 1, []),
        ((3, 64, 64), 4, [(3, 1, 16384)]),
        ((12, 84, 84), 1, [(12, 1, 7056), (6, 1, 14112), (4, 1, 21168), (3, 1, 28224), (2, 1, 42336)]),
        ((84, 84), 1, []),
        ((5, 84, 84, 3), 1, [(5, 1, 21168), (3, 35280, 1)]),
    ],
)
def test_an_image_may_be_seen_as_these_stacks(shape, itemsize, expected):
    assert [(one.depth, one.pixels, one.group) for one in stacks(shape, itemsize)] == expected


def test_a_shift_is_noticed_and_stillness_is_no_shift():
    frames = np.random.default_rng(0).integers(0, 256, (6, 30), np.uint8)
    geometry = FrameGeometry(4, 1, 30)
    before, after = frames[:4].reshape(-1), frames[1:5].reshape(-1)
    assert geometry.shifts(before, after) is True
    assert geometry.shifts(after, before) is False
    still = np.tile(frames[0], 4)
    assert geometry.shifts(still, still) is None
    assert FrameGeometry(2, 1, 60).shifts(before, after) is False
