"""Pickles and copies of recordings are independent, and pickles name public modules only."""

import copy
import io
import pickle

import numpy as np
import pytest

from sb3_extra_buffers import recording
from sb3_extra_buffers.codecs import CodecSpec
from sb3_extra_buffers.recording import DummyRecordBuffer, FramelessRecordBuffer, RecordBuffer

TWINS = {
    "shallow copy": copy.copy,
    "deep copy": copy.deepcopy,
    "pickle": lambda buffer: pickle.loads(pickle.dumps(buffer)),
}
STORAGE = [
    *({"compression_method": method} for method in ("auto", "none", "rle", "gzip")),
    {"compression_method": CodecSpec("gzip", {"level": 3}), "layout": "cells"},
    {"compression_method": "none", "layout": "frames"},
    {"layout": "cells"},
    {"prefer": "memory", "threads": 2},
]


class Tracked(RecordBuffer):
    """A subclass with an attribute of its own."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.note = {"seed": 3}


def modules_of(pickled):
    """The modules that a pickle names."""
    found = set()

    class Unpickler(pickle.Unpickler):
        def find_class(self, module, name):
            found.add(module)
            return super().find_class(module, name)

    Unpickler(io.BytesIO(pickled)).load()
    return found


@pytest.mark.parametrize("twin", TWINS)
@pytest.mark.parametrize("storage", STORAGE, ids=str)
@pytest.mark.parametrize("count", [0, 3, 20, 47])
def test_a_copy_records_independently(twin, storage, count, play, record, expect):
    steps = play(60)
    buffer = record(RecordBuffer((20, 24), 3, 20, **storage), steps[:count])
    other = TWINS[twin](buffer)
    expect(other, steps[:count])
    assert (other.memory.raw_nbytes, other.memory.codec) == (buffer.memory.raw_nbytes, buffer.memory.codec)
    record(other, steps[count:])
    expect(other, steps)
    expect(buffer, steps[:count])
    assert other.frame_shape == (20, 24, 3)


@pytest.mark.parametrize("twin", TWINS)
@pytest.mark.parametrize("kind", [RecordBuffer, FramelessRecordBuffer, DummyRecordBuffer, Tracked])
def test_a_copy_keeps_settings_features_and_attributes(twin, kind, play, record):
    dtypes = ["uint8", "float64", "int16", "float32"]
    buffer = kind((20, 24), 3, 20, dtypes, channels="last", action_dtype="float32", action_shape=2)
    steps = play(
        30,
        action=lambda random: random.normal(size=2).astype(np.float32),
        features=lambda random: [int(random.integers(9)), 0.5],
    )
    record(buffer, steps)
    other = TWINS[twin](buffer)
    assert (other.asked, other.dtypes, other.steps) == (buffer.asked, buffer.dtypes, 30)
    assert other.begins_whole is buffer.begins_whole
    for name in ("actions", "features", "rewards", "dones"):
        assert getattr(other[:], name).tobytes() == getattr(buffer[:], name).tobytes()
    assert getattr(other, "note", None) == getattr(buffer, "note", None)


def test_the_first_action_still_sets_the_dtype_after_a_copy():
    buffer = FramelessRecordBuffer(size=9)
    for twin in TWINS.values():
        other = twin(buffer)
        other.add(None, 0, [0.5, 1.5])
        assert other[:].actions.tolist() == [[0.5, 1.5]]
    assert len(buffer) == 0


@pytest.mark.parametrize("storage", STORAGE, ids=str)
def test_pickles_of_buffers_name_public_modules_only(storage, play, record):
    buffer = record(RecordBuffer((20, 24), 3, 20, **storage), play(47))
    for found in (modules_of(pickle.dumps(buffer)), modules_of(pickle.dumps(DummyRecordBuffer()))):
        assert {name for name in found if name.startswith("sb3_extra_buffers")} == {recording.__name__}


def test_pickles_of_what_is_read_name_public_modules_only(play, record):
    buffer = record(RecordBuffer((20, 24), 3, 20), play(47))
    for value in (buffer[3], buffer[:], buffer.statistics(), buffer.memory):
        found = modules_of(pickle.dumps(value))
        assert {name for name in found if name.startswith("sb3_extra_buffers")} == {recording.__name__}


def test_a_pickle_is_as_large_as_what_was_recorded(play, record):
    for method in ("auto", "none"):
        buffer = record(RecordBuffer((20, 24), 3, 5000, compression_method=method), play(10))
        assert len(pickle.dumps(buffer)) < 20 * 24 * 3 * 20 + 5000 * 20
