"""Compressed frames behave like a numpy array."""

import numpy as np
import pytest

from sb3_extra_buffers.errors import ObservationError
from sb3_extra_buffers.recording import RecordBuffer


@pytest.fixture
def both(play, record):
    steps = play(9, (18, 20, 3))
    buffers = [record(RecordBuffer((18, 20), 3, 9, compression_method=method), steps) for method in ("auto", "none")]
    return buffers[0].frames, np.array(buffers[1].frames)


KEYS = {
    "a number": 3,
    "from the end": -1,
    "a slice": slice(2, 7),
    "every other": slice(None, None, 2),
    "some": [1, 5, 5],
    "a mask": np.arange(9) % 2 == 0,
    "a channel": (4, 1),
    "a pixel of some": (slice(1, 4), 2, 5, 6),
    "a part of all": (slice(None), slice(None), slice(3, 9), 0),
    "all of them": ...,
    "backwards": slice(None, None, -2),
    "none of them": [],
    "a table of them": np.array([[0, 8], [-2, 0]]),
    "a row": (1, slice(None), 3),
    "rows in another order": (1, slice(None), [7, 2]),
    "a channel of each": ([1, 5, 2], [0, 2, 1]),
    "columns of some": ([1, 5], slice(None), slice(None), 4),
    "channels of a mask": (np.arange(9) > 6, [0, 2, 1][:2]),
    "a mask of channels": np.arange(27).reshape(9, 3) % 4 == 0,
    "a mask of channels, and a row": (np.arange(27).reshape(9, 3) % 4 == 0, 5),
    "from behind": (..., 5),
    "a new axis": (None, 2),
    "one element": (2, 1, 3, 4),
    "everything": (),
}


@pytest.mark.parametrize("key", KEYS)
def test_reading_by_index_equals_numpy(both, key):
    compressed, plain = both
    assert np.array_equal(compressed[KEYS[key]], plain[KEYS[key]])


@pytest.mark.parametrize("whole", [False, True], ids=["one number", "as much as there is room for"])
@pytest.mark.parametrize("key", KEYS)
def test_writing_by_index_equals_numpy(both, key, whole):
    compressed, plain = both
    room = plain[KEYS[key]].shape
    value = np.random.default_rng(1).integers(0, 256, room).astype(np.uint8) if whole else 7
    for array in both:
        array[KEYS[key]] = value
    assert np.array_equal(np.asarray(compressed), plain)


@pytest.mark.parametrize("key", [2, slice(3, 5), (2,), (slice(3, 5),)], ids=str)
@pytest.mark.parametrize("shape", [(20,), (18, 20), (18, 1), (3, 1, 1), (3, 18, 20), (1, 3, 18, 20)], ids=str)
def test_values_are_broadcast_as_by_numpy(both, key, shape):
    compressed, plain = both
    for array in both:
        array[key] = np.random.default_rng(1).integers(0, 256, shape).astype(np.uint8)
    assert np.array_equal(np.asarray(compressed), plain)


@pytest.mark.parametrize("key", [1, (1, 0), (slice(2), slice(None), 3)], ids=str)
def test_a_failed_write_changes_nothing(both, key):
    compressed, plain = both
    for wrong in (256, np.full(20, 300), 0.5, np.zeros((5, 5), np.uint8)):
        with pytest.raises(ObservationError, match="value"):
            compressed[key] = wrong
    assert np.array_equal(np.asarray(compressed), plain)


@pytest.mark.parametrize("key", [9, -10, (9, 0), [1, 9], (1, 3), np.ones(8, bool)], ids=str)
def test_an_index_out_of_range_raises_an_error(both, key):
    compressed, plain = both
    with pytest.raises(IndexError):
        _ = compressed[key]
    with pytest.raises(IndexError):
        compressed[key] = 1
    assert np.array_equal(np.asarray(compressed), plain)


def test_shape_dtype_and_size_equal_those_of_numpy(both):
    compressed, plain = both
    assert (compressed.shape, compressed.dtype, compressed.ndim) == (plain.shape, plain.dtype, plain.ndim)
    assert (len(compressed), compressed.nbytes) == (len(plain), plain.nbytes)
    assert np.array_equal(np.asarray(compressed), plain)
    assert "ChannelsFirst (9, 3, 18, 20) of uint8" in repr(compressed)


def test_frames_can_be_written_and_filled(both):
    compressed, plain = both
    for array in both:
        array[2] = plain[7]
        array[3:5] = plain[:2]
        array[6] = 9
    assert np.array_equal(np.asarray(compressed), plain)
    compressed.fill(5)
    assert (np.asarray(compressed) == 5).all()
