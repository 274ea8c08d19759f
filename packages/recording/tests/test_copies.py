"""Pickles and copies are recordings of their own."""

import copy
import pickle

import pytest

from sb3_extra_buffers.recording import RecordBuffer

TWINS = {"copy": copy.deepcopy, "pickle": lambda buffer: pickle.loads(pickle.dumps(buffer))}


@pytest.mark.parametrize("twin", TWINS)
@pytest.mark.parametrize("method", ["auto", "none", "rle", "gzip"])
@pytest.mark.parametrize("count", [0, 3, 20, 47])
def test_both_go_on_by_themselves(twin, method, count, play, record, expect):
    steps = play(60)
    buffer = record(RecordBuffer((20, 24), 3, 20, compression_method=method), steps[:count])
    other = TWINS[twin](buffer)
    expect(other, steps[:count])
    record(other, steps[count:])
    expect(other, steps)
    expect(buffer, steps[:count])
    assert other.frame_shape == (20, 24, 3)


def test_a_pickle_holds_what_was_recorded_and_not_what_may_come(play, record):
    for method in ("auto", "none"):
        buffer = record(RecordBuffer((20, 24), 3, 5000, compression_method=method), play(10))
        assert len(pickle.dumps(buffer)) < 20 * 24 * 3 * 20 + 5000 * 20
