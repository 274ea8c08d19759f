"""The bytes of a chunk are frozen: these are written down by hand."""

import numpy as np
import pytest

from sb3_extra_buffers.errors import PayloadError
from sb3_extra_buffers.frames.packing import (
    END,
    Parsed,
    count_dtype,
    patch,
    spread,
    worst_nbytes,
    worst_steps_nbytes,
)


def pack(frames, base):
    """A chunk, and what its first patch takes."""
    patches = [patch(old, new) for old, new in zip([base, *frames], frames)]
    assert all(len(steps) <= worst_steps_nbytes(len(base)) for steps, _ in patches)
    counts = np.array([len(steps) // 2 for steps, _ in patches], count_dtype(len(base)))
    steps, content = (np.concatenate([part[number] for part in patches]) for number in (0, 1))
    return np.concatenate([counts.view(np.uint8), steps, content, END]), len(patches[0][0]) + len(patches[0][1])


def unpack(packed, count, base, upto=None):
    """The frames of a chunk, taken apart beside another one."""
    beside, _ = pack(np.array([base + 1, base]), base)
    upto = count if upto is None else upto
    parsed = Parsed([beside, packed], np.array([2, count]), np.array([2, upto]), len(base))
    current, frames = base.copy(), []
    for number in range(upto):
        parsed.apply(current, 1, number, number + 1)
        frames.append(current.copy())
        at_once = base.copy()
        parsed.apply(at_once, 1, 0, number + 1)
        np.testing.assert_array_equal(at_once, current)
    other = base.copy()
    parsed.apply(other, 0, 0, 2)
    np.testing.assert_array_equal(other, base)
    return np.array(frames)


def frame(size, **bytes_):
    content = np.zeros(size, np.uint8)
    for place, value in bytes_.items():
        content[int(place[1:])] = value
    return content


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        ([frame(10)], [0, 0]),
        ([frame(10, _3=7)], [1, 0, 3, 1, 7]),
        ([frame(10, _0=1, _1=2), frame(10, _0=1, _1=2)], [1, 0, 0, 0, 0, 2, 1, 2]),
        # Two equal bytes between two that changed are put once more; three begin another step.
        ([frame(10, _0=1, _3=2)], [1, 0, 0, 4, 1, 0, 0, 2]),
        ([frame(10, _0=1, _4=2)], [2, 0, 0, 1, 3, 1, 1, 2]),
        ([frame(10, _0=5), frame(10, _9=6)], [1, 0, 2, 0, 0, 1, 0, 1, 8, 1, 5, 0, 6]),
        # A way of 256 takes a step that puts nothing, which goes 256 times as far.
        ([frame(600, _255=1)], [1, 0, 255, 1, 1]),
        ([frame(600, _256=1)], [2, 0, 1, 0, 0, 1, 1]),
        ([frame(600, _3=9, _599=1)], [3, 0, 3, 1, 2, 0, 83, 1, 9, 1]),
        # One of these reaches 65280 bytes far.
        ([frame(66_000, _65535=1)], [2, 0, 255, 0, 255, 1, 1]),
        ([frame(66_000, _65536=1)], [3, 0, 255, 0, 1, 0, 0, 1, 1]),
        ([frame(200_000, _199999=1)], [5, 0, 0, 0, *[255, 0] * 3, 16, 0, 63, 1, 1]),
        # 300 bytes in a row take two steps.
        ([np.full(300, 9, np.uint8)], [2, 0, 0, 255, 0, 45, *[9] * 300]),
        ([np.full(255, 9, np.uint8)], [1, 0, 0, 255, *[9] * 255]),
    ],
)
def test_the_format_is_what_the_document_says(frames, expected):
    base = np.zeros(len(frames[0]), np.uint8)
    packed, _ = pack(np.array(frames), base)
    assert packed.tolist() == [*expected, *[0] * 7]
    np.testing.assert_array_equal(unpack(packed, len(frames), base), frames)


def test_the_first_patch_is_measured():
    base = frame(100, _5=1)
    assert pack(np.array([frame(100, _5=1, _50=2)]), base)[1] == 3
    assert pack(np.array([base]), base)[1] == 0


@pytest.mark.parametrize("nbytes", [1, 4, 255, 256, 5000])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 1.0])
def test_frames_come_back_and_never_take_more_than_is_reserved(nbytes, share):
    rng = np.random.default_rng(nbytes)
    frames = np.zeros((6, nbytes), np.uint8)
    for index in range(6):
        changed = rng.random(nbytes) < share
        frames[index] = np.where(changed, rng.integers(0, 256, nbytes), frames[index - 1] if index else 0)
    base = rng.integers(0, 256, nbytes).astype(np.uint8)
    packed, _ = pack(frames, base)
    np.testing.assert_array_equal(unpack(packed, 6, base), frames)
    np.testing.assert_array_equal(unpack(packed, 6, base, upto=2)[:2], frames[:2])
    assert len(packed) <= worst_nbytes(6, nbytes)


def test_every_fourth_byte_is_the_worst_that_can_happen_to_steps():
    frames = np.zeros((2, 4001), np.uint8)
    frames[1, ::4] = 1
    packed, _ = pack(frames, np.zeros(4001, np.uint8))
    assert len(packed) <= worst_nbytes(2, 4001)
    assert len(packed) < 4001


def test_large_frames_count_steps_in_four_bytes():
    assert (count_dtype(1 << 17), count_dtype((1 << 17) + 1)) == (np.dtype("<u2"), np.dtype("<u4"))


def test_ranges_are_spread():
    assert spread(np.array([5, 0, 9]), np.array([2, 0, 3])).tolist() == [5, 6, 9, 10, 11]


@pytest.mark.parametrize(
    "damaged",
    [
        [9, 0, 3, 1, 7, *[0] * 7],  # more steps than there are
        [1, 0, 3, 200, 7, *[0] * 7],  # puts beyond the frame
        [1, 0, 250, 1, 7, *[0] * 7],  # goes beyond the frame
        [1, 0, 1, 0, *[0] * 7],  # goes beyond the frame and puts nothing there
        [1, 0, 3, 6, 7, 7],  # ends too early
    ],
)
def test_damage_is_noticed(damaged):
    with pytest.raises(PayloadError, match="its patches reach beyond their frame, or beyond its end"):
        unpack(np.array(damaged, np.uint8), 1, np.zeros(10, np.uint8))


def test_steps_that_put_nothing_are_followed_wherever_they_are():
    counts, steps, content = [2, 0, 0, 0, 3, 0], [3, 1, 4, 0, 1, 0, 1, 1, 2, 0], [7, 8]
    packed = np.array([*counts, *steps, *content, *[0] * 7], np.uint8)
    expected = [frame(2000, _3=7), frame(2000, _3=7), frame(2000, _3=7, _257=8)]
    np.testing.assert_array_equal(unpack(packed, 3, np.zeros(2000, np.uint8)), expected)
