"""The three buffer classes take the same arguments and calls; without frames, exports of frames are refused."""

import copy
import inspect
import pickle
from pathlib import Path

import numpy as np
import pytest

from sb3_extra_buffers.errors import BufferStateError
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
def test_all_classes_take_the_same_arguments(make, arguments):
    given = ARGUMENTS[arguments]
    buffer = make(**given) if isinstance(given, dict) else make(*given)
    assert isinstance(buffer, BaseRecordBuffer)
    assert (buffer.max_size, buffer.max_index, buffer.feature_num, buffer.use_features) == (10, 9, 0, False)
    assert len(buffer) == buffer.steps == 0


def test_all_classes_need_no_arguments(make):
    buffer = make()
    assert (buffer.max_size, len(buffer)) == (40_000, 0)


def test_all_classes_take_every_call(make, play, record, tmp_path):
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
    assert len(buffer.episode(-1)) == (0 if make is DummyRecordBuffer else 6)
    assert [len(clip) for clip in (buffer.read(0, 10), buffer[::3], buffer.gather([9, 1, 1]))] == [10, 4, 3]
    assert len(list(buffer)) == sum(map(len, buffer.batches(3))) == len(buffer.without_frames()) == 10
    assert sum(map(len, buffer.episodes)) == (0 if make is DummyRecordBuffer else 10)
    assert isinstance(buffer.statistics(), Statistics)
    assert str(buffer.statistics())
    assert buffer.memory.ratio > 0
    assert type(buffer).__name__ in repr(buffer)
    for twin in (copy.deepcopy(buffer), pickle.loads(pickle.dumps(buffer))):
        twin.add(steps[1].frame, 1.0, 1)
        assert (twin.steps, buffer.steps) == (28, 27)
    assert buffer.asked == make().asked
    buffer.reset()
    assert (len(buffer), buffer.steps, buffer.episodes) == (0, 0, [])
    record(buffer, steps)
    assert len(buffer) == 10


def test_all_classes_save_and_load(make, play, record, tmp_path):
    path = tmp_path / "recording"
    record(RecordBuffer((20, 24), 3, 10), play(27)).save(path)
    content = path.read_bytes()
    buffer = make.load(path)
    assert (len(buffer), buffer.steps) == (10, 27)
    size = buffer.save(path)
    if make is DummyRecordBuffer:  # it does not replace a recording
        assert (size, path.read_bytes()) == (0, content)
        return
    assert size == path.stat().st_size
    with load(path) as saved:
        assert (len(saved), saved.recorded_by) == (10, make.__name__)
        assert saved[:].rewards.tolist() == buffer[:].rewards.tolist()


def test_every_class_loads_what_it_saved_even_without_a_file(make, play, record, tmp_path):
    path = tmp_path / "recording"
    buffer = record(make((20, 24), 3, 10), play(27))
    buffer.save(path)
    for options in ({}, {"size": 5, "action_dtype": "int32"}):
        twin = make.load(path, **options)
        assert type(twin) is make
        assert len(twin) == (0 if make is DummyRecordBuffer else options.get("size", 10))
        assert twin.max_size == options.get("size", 40_000 if make is DummyRecordBuffer else 10)
        record(twin, play(50))
        assert len(twin) == min(50, twin.max_size)
    with pytest.raises(TypeError, match="unexpected keyword argument 'sise'"):
        make.load(path, sise=3)


#: Exports: path, options, needed libraries, and whether they need frames.
EXPORTS = {
    "contact_sheet": ("a.png", {}, ["PIL"], True),
    "to_dataset": ("a", {}, ["datasets", "PIL"], False),
    "to_minari": ("a-v0", {"terminal_frames": True}, ["minari", "PIL", "pyarrow"], True),
    "to_npz": ("a.npz", {}, [], False),
    "to_parquet": ("a.parquet", {}, ["pyarrow"], False),
    "to_video": ("a.mp4", {}, ["av", "PIL"], True),
}


@pytest.mark.parametrize("method", EXPORTS)
def test_exports_need_frames_only_where_frames_are_written(make, method, play, record, tmp_path, monkeypatch):
    name, options, libraries, needs_frames = EXPORTS[method]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    export = getattr(record(make((20, 24), 3, 10), play(25)), method)
    if make is DummyRecordBuffer:
        assert export(name, **options) is None
        assert export() is None  # arguments do not matter
    elif make is FramelessRecordBuffer and needs_frames:
        with pytest.raises(BufferStateError, match=f"cannot {method}: it has no frames"):
            export(name, **options)
    else:
        for library in libraries:
            pytest.importorskip(library)
        found = export(name, **options)
        assert found == Path(name) or type(found).__name__ in ("Dataset", "MinariDataset")
        assert [path.name for path in tmp_path.iterdir()] == [name]
        return
    assert list(tmp_path.iterdir()) == []


def test_every_public_name_is_covered_by_these_tests():
    """A new name must be tested for each class."""
    calls = {"add", "batches", "episode", "gather", "load", "read", "reset", "save", "statistics", "without_frames"}
    arrays = {"actions", "dones", "features", "frames", "rewards"}
    facts = {"asked", "begins_whole", "dtypes", "episodes", "feature_num", "frame_dtype", "frame_shape", "keeps_frames"}
    facts |= {"max_index", "max_size", "memory", "steps", "use_features"}
    found = {name for make in CLASSES for name in dir(make(size=3)) if not name.startswith("_")}
    assert found == calls | arrays | facts | set(EXPORTS)


def test_unknown_arguments_are_refused(make):
    names = [parameter.name for parameter in inspect.signature(make).parameters.values()]
    assert names == [parameter.name for parameter in inspect.signature(RecordBuffer).parameters.values()]
    with pytest.raises(TypeError, match="unexpected keyword argument 'sise'"):
        make(sise=3)


def test_all_classes_take_features(make, play, record):
    buffer = make((20, 24), 3, 10, ["uint8", "float32", "int16", "float64"])
    record(buffer, play(12, features=lambda random: (int(random.integers(100)), float(random.normal()))))
    assert (buffer.feature_num, buffer.use_features) == (2, True)
    assert buffer[:].features.dtype == [("0", np.int16), ("1", np.float64)]


def test_all_published_arguments_can_be_positional(make, play):
    buffer = make((20, 24), 3, 4, ["uint8", "float32", "uint8"])
    for step in play(9):
        buffer.add(step.frame, step.reward, step.action, [7])
    assert len(buffer) == 4


def test_the_dummy_buffer_keeps_nothing_and_reads_as_zeros(play, record):
    buffer = record(DummyRecordBuffer(size=10), play(30))
    clip = buffer[:]
    assert clip.frames is None
    assert not any(column.any() for column in (clip.rewards, clip.actions, clip.dones))
    assert (clip.actions.shape, clip.actions.dtype) == ((10,), np.int64)
    vectors = record(DummyRecordBuffer(size=10, action_shape=2, action_dtype="float32"), play(30))
    assert (vectors[:].actions.shape, vectors[:].actions.dtype) == ((10, 2), np.float32)
    with pytest.raises(TypeError, match="nothing is kept"):
        _ = buffer.rewards[0]


def test_the_frameless_buffer_keeps_everything_but_frames(play, record, expect):
    steps = play(30)
    expect(record(FramelessRecordBuffer(size=12), steps), steps)
