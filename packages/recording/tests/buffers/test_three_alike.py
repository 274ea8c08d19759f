"""The three classes are interchangeable: whatever is called on one can be called on the others."""

import copy
import pickle

import numpy as np
import pytest

from sb3_extra_buffers.recording import (
    BaseRecordBuffer,
    Clip,
    DummyRecordBuffer,
    FramelessRecordBuffer,
    RecordBuffer,
    Statistics,
    Step,
    force_alloc_mem,
    load,
)

CLASSES = [RecordBuffer, FramelessRecordBuffer, DummyRecordBuffer]
ARGUMENTS = {
    "all by position": ((20, 24), 3, 10, [np.uint8, np.float32]),
    "by name": {"res": (20, 24), "ch_num": 3, "size": 10, "dtypes": ["uint8", "np.float32"]},
    "all that there are": {
        "res": (20, 24),
        "ch_num": 3,
        "size": 10,
        "channels": "last",
        "action_dtype": int,
        "action_shape": (),
        "compression_method": "gzip",
        "compression_kwargs": {"level": 1},
        "layout": "cells",
        "prefer": "speed",
        "threads": 1,
    },
}


@pytest.fixture(params=CLASSES, ids=lambda cls: cls.__name__)
def make(request):
    return request.param


@pytest.mark.parametrize("arguments", ARGUMENTS)
def test_they_are_made_with_the_same_arguments(make, arguments):
    given = ARGUMENTS[arguments]
    buffer = make(**given) if isinstance(given, dict) else make(*given)
    assert isinstance(buffer, BaseRecordBuffer)
    assert (buffer.max_size, buffer.max_index, buffer.feature_num, buffer.use_features) == (10, 9, 0, False)
    assert len(buffer) == buffer.steps == 0


def test_they_are_made_without_arguments(make):
    buffer = make()
    assert (buffer.max_size, len(buffer)) == (40_000, 0)


def test_every_call_works_on_all_of_them(make, play, record, tmp_path):
    buffer = make((20, 24), 3, 10)
    force_alloc_mem(buffer)
    for array in (buffer.frames, buffer.rewards, buffer.actions, buffer.features, buffer.dones):
        array.fill(0)
    assert buffer.episodes == []
    assert list(buffer) == list(buffer.batches()) == []
    steps = play(25)
    for count, step in enumerate(steps, 1):
        buffer.add(step.frame, step.reward, step.action, done=step.done)
        assert len(buffer) == min(count, 10)
        assert buffer.steps == count
    buffer.add(steps[0].frame, 0.5, 3)
    buffer.add(steps[0].frame, 0.5, 3, None)
    assert isinstance(buffer[0], Step)
    assert isinstance(buffer[-1], Step)
    assert isinstance(buffer[2:5], Clip)
    assert isinstance(buffer.episode(-1), Clip)
    assert [len(clip) for clip in (buffer.read(0, 10), buffer[::3], buffer.gather([9, 1, 1]))] == [10, 4, 3]
    assert len(list(buffer)) == sum(map(len, buffer.batches(3))) == len(buffer.without_frames()) == 10
    assert sum(map(len, buffer.episodes)) == 10
    assert isinstance(buffer.statistics(), Statistics)
    assert str(buffer.statistics())
    assert buffer.memory.ratio > 0
    assert type(buffer).__name__ in repr(buffer)
    for twin in (copy.deepcopy(buffer), pickle.loads(pickle.dumps(buffer))):
        twin.add(steps[1].frame, 1.0, 1)
        assert (twin.steps, buffer.steps) == (28, 27)
    assert buffer.save(tmp_path / "recording") == (tmp_path / "recording").stat().st_size
    with load(tmp_path / "recording") as saved:
        assert len(saved) == 10
        assert saved[:].rewards.tolist() == buffer[:].rewards.tolist()
    buffer.to_npz(tmp_path / "arrays.npz")
    with np.load(tmp_path / "arrays.npz") as arrays:
        assert arrays["rewards"].tolist() == buffer[:].rewards.tolist()
    loaded = make.load(tmp_path / "recording")
    assert (len(loaded), loaded.steps, loaded.episodes) == (10, 27, buffer.episodes)
    buffer.reset()
    assert (len(buffer), buffer.steps, buffer.episodes) == (0, 0, [])
    record(buffer, steps)
    assert len(buffer) == 10


def test_features_are_taken_by_all_of_them(make, play, record):
    buffer = make((20, 24), 3, 10, ["uint8", "float32", "int16", "float64"])
    record(buffer, play(12, features=lambda random: (int(random.integers(100)), float(random.normal()))))
    assert (buffer.feature_num, buffer.use_features) == (2, True)
    assert buffer[:].features.dtype == [("0", np.int16), ("1", np.float64)]


def test_a_call_with_all_published_arguments_by_position(make, play):
    buffer = make((20, 24), 3, 4, ["uint8", "float32", "uint8"])
    for step in play(9):
        buffer.add(step.frame, step.reward, step.action, [7])
    assert len(buffer) == 4


def test_the_dummy_keeps_nothing_and_reads_as_zeros(play, record):
    buffer = record(DummyRecordBuffer(size=10), play(30))
    clip = buffer[:]
    assert clip.frames is None
    assert not any(column.any() for column in (clip.rewards, clip.actions, clip.dones))
    with pytest.raises(TypeError, match="nothing is kept"):
        _ = buffer.rewards[0]


def test_without_frames_everything_else_is_there(play, record, expect):
    steps = play(30)
    expect(record(FramelessRecordBuffer(size=12), steps), steps)
