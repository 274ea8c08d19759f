"""Hugging Face datasets restore every value."""

import json

import datasets
import numpy as np
import pytest

from sb3_extra_buffers.errors import BufferStateError, FileWriteError
from sb3_extra_buffers.recording import FramelessRecordBuffer, RecordBuffer
from sb3_extra_buffers.recording.exports import METADATA_KEY


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr("sb3_extra_buffers.recording.protocol._BATCH_SIZE", 4 * 20 * 24 * 3)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_images_are_restored(tmp_path, play, record, small_batches, channels):
    buffer = record(RecordBuffer((20, 24), channels, 17), play(23, shape=(20, 24, channels)))
    returned = buffer.to_dataset(tmp_path / "a")
    for found in (returned, datasets.load_from_disk(str(tmp_path / "a"))):
        assert found.features["frame"] == datasets.Image()
        frames = np.stack([np.asarray(row["frame"]).reshape(20, 24, channels) for row in found])
        assert (frames == buffer[:].frames).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.uint16, np.int8, np.uint8, np.bool_])
def test_frames_that_are_not_images_are_restored_as_arrays(tmp_path, small_batches, dtype):
    random = np.random.default_rng(0)
    buffer = RecordBuffer((6, 7), 5, 9, [dtype, np.float32])
    for number in range(9):
        buffer.add((random.normal(size=(6, 7, 5)) * 50).astype(dtype), 0, number)
    found = buffer.to_dataset(tmp_path / "a")
    assert found.features["frame"] == datasets.Array3D((6, 7, 5), np.dtype(dtype).name)
    frames = np.array(found.data["frame"].to_pylist(), dtype)  # as stored
    assert frames.tobytes() == buffer[:].frames.tobytes()


def test_columns_are_those_of_parquet(tmp_path, play, record, small_batches):
    steps = play(
        23,
        action=lambda random: random.normal(size=2),
        features=lambda random: [int(random.integers(9)), float(np.float32(random.normal()))],
    )
    buffer = record(RecordBuffer((20, 24), 3, 17, [np.uint8, np.float32, np.uint8, np.float32]), steps)
    found = buffer.to_dataset(tmp_path / "a", steps=range(3, 15))
    clip = buffer[3:15]
    assert found.column_names == ["episode", "step", "action", "reward", "done", "feature_0", "feature_1", "frame"]
    assert found["action"][:] == clip.actions.tolist()
    assert found["reward"][:] == clip.rewards.tolist()
    assert found["done"][:] == clip.dones.tolist()
    assert found["feature_1"][:] == clip.features["1"].tolist()
    assert str(found.features["reward"]) == "Value('float32')"


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "float64"])
def test_numbers_of_every_dtype_are_restored(tmp_path, dtype):
    values = np.array([0, 1, 1, 0], dtype)
    buffer = FramelessRecordBuffer(size=9, dtypes=["uint8", dtype, dtype], action_dtype=dtype, action_shape=2)
    for value in values:
        buffer.add(None, value, [value, 1], [value])
    buffer.to_dataset(tmp_path / "a")
    found = datasets.load_from_disk(str(tmp_path / "a"))
    for name in ("reward", "feature_0"):
        assert found.features[name] == datasets.Value(dtype)
        assert np.array(found[name][:], dtype).tolist() == values.tolist()
    assert np.array(found["action"][:], dtype).tolist() == [[value, 1] for value in values.tolist()]


@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (2, 1, 3)], ids=str)
def test_actions_of_every_shape_are_restored(tmp_path, play, record, shape):
    steps = play(9, action=lambda random: random.normal(size=shape).astype(np.float32))
    buffer = record(RecordBuffer((20, 24), 1, 9), [step._replace(frame=step.frame[..., :1]) for step in steps])
    buffer.to_dataset(tmp_path / "a", steps=range(2, 7))
    found = datasets.load_from_disk(str(tmp_path / "a"))
    metadata = json.loads(found.info.description)[METADATA_KEY]
    assert metadata == {"version": 1, "action_shape": list(shape), "frame_shape": [20, 24, 1], "frame_dtype": "|u1"}
    actions = np.array(found["action"][:], np.float32).reshape(-1, *metadata["action_shape"])
    assert actions.tobytes() == buffer[2:7].actions.tobytes()
    assert actions.shape == buffer[2:7].actions.shape


def test_without_frames_there_is_no_frame_column(tmp_path, play, record):
    found = record(FramelessRecordBuffer(size=9), play(9)).to_dataset(tmp_path / "a")
    assert found.column_names == ["episode", "step", "action", "reward", "done"]
    assert len(found) == 9


def test_the_folder_may_be_relative(tmp_path, play, record, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(record(RecordBuffer((20, 24), 3, 9), play(9)).to_dataset("a")) == 9


def test_no_temporary_files_are_left(tmp_path, play, record):
    record(RecordBuffer((20, 24), 3, 9), play(9)).to_dataset(tmp_path / "a")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    expected = ["data-00000-of-00001.arrow", "dataset_info.json", "state.json"]
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == expected


def test_progress_bars_of_the_library_are_restored(tmp_path, play, record, capsys):
    assert not datasets.are_progress_bars_disabled()
    record(RecordBuffer((20, 24), 3, 9), play(9)).to_dataset(tmp_path / "a")
    assert not datasets.are_progress_bars_disabled()
    assert capsys.readouterr().err == ""


def test_bad_input_leaves_nothing(tmp_path, play, record):
    with pytest.raises(BufferStateError, match="nothing was recorded"):
        RecordBuffer(size=3).to_dataset(tmp_path / "a")
    buffer = record(RecordBuffer((20, 24), 3, 9), play(9))
    with pytest.raises(FileWriteError, match="there is no folder"):
        buffer.to_dataset(tmp_path / "missing" / "a")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "a").mkdir()
    with pytest.raises(FileWriteError, match="it already exists"):
        buffer.to_dataset(tmp_path / "a")
