"""Compressed frames look like the published array of frames."""

import numpy as np
import pytest

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
}


@pytest.mark.parametrize("key", KEYS)
def test_an_index_picks_what_it_picks_of_an_array(both, key):
    compressed, plain = both
    assert np.array_equal(compressed[KEYS[key]], plain[KEYS[key]])


def test_it_says_what_an_array_says(both):
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
