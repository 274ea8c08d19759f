"""Parquet files restore every value."""

import io
import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from sb3_extra_buffers.errors import BufferStateError, FileWriteError, ParameterError
from sb3_extra_buffers.recording import FramelessRecordBuffer, RecordBuffer
from sb3_extra_buffers.recording.exports import METADATA_KEY


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr("sb3_extra_buffers.recording.protocol._BATCH_SIZE", 4 * 20 * 24 * 3)


def read(path):
    table = pq.read_table(path)
    return table, json.loads(table.schema.metadata[METADATA_KEY.encode()])


def frames_of(table, about):
    raw = table["frame"].to_pylist()
    if about["frames"] == "png":
        arrays = [np.asarray(Image.open(io.BytesIO(frame))) for frame in raw]
    else:
        arrays = [np.frombuffer(frame, about["frame_dtype"]) for frame in raw]
    return np.stack([array.reshape(about["frame_shape"]) for array in arrays])


@pytest.mark.parametrize("encoding", ["raw", "png"])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_frames_are_restored(tmp_path, play, record, small_batches, encoding, channels):
    buffer = record(RecordBuffer((20, 24), channels, 17), play(23, shape=(20, 24, channels)))
    table, about = read(buffer.to_parquet(tmp_path / "a.parquet", frames=encoding))
    found, expected = frames_of(table, about), buffer[:].frames
    assert found.dtype == expected.dtype
    assert (found == expected).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint16, np.int8, np.bool_])
def test_frames_of_every_dtype_are_restored(tmp_path, dtype):
    random = np.random.default_rng(0)
    buffer = RecordBuffer((6, 7), 5, 9, [dtype, np.float32])
    for number in range(9):
        buffer.add((random.normal(size=(6, 7, 5)) * 50).astype(dtype), 0, number)
    table, about = read(buffer.to_parquet(tmp_path / "a.parquet"))
    assert frames_of(table, about).tobytes() == buffer[:].frames.tobytes()
    with pytest.raises(ParameterError, match="1 to 4 channels of uint8"):
        buffer.to_parquet(tmp_path / "b.parquet", frames="png")
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]


def test_columns_are_as_documented(tmp_path, play, record, small_batches):
    steps = play(23, features=lambda random: [int(random.integers(9)), float(np.float32(random.normal()))])
    buffer = record(RecordBuffer((20, 24), 3, 17, [np.uint8, np.float64, np.uint8, np.float32]), steps)
    table, about = read(buffer.to_parquet(tmp_path / "a.parquet"))
    names = ["episode", "step", "action", "reward", "done", "feature_0", "feature_1", "frame"]
    assert table.column_names == names
    types = ["int64", "int64", "int64", "double", "bool", "uint8", "float", "fixed_size_binary[1440]"]
    assert [str(kind) for kind in table.schema.types] == types
    clip = buffer[:]
    assert table["reward"].to_numpy().tolist() == clip.rewards.tolist()
    assert table["action"].to_numpy().tolist() == clip.actions.tolist()
    assert table["done"].to_pylist() == clip.dones.tolist()
    for number in range(2):
        assert table[f"feature_{number}"].to_numpy().tolist() == clip.features[str(number)].tolist()
    places = [(number, step) for number, episode in enumerate(buffer.episodes) for step in range(len(episode))]
    assert list(zip(table["episode"].to_pylist(), table["step"].to_pylist())) == places
    expected = {"version": 1, "action_shape": [], "frames": "raw", "frame_shape": [20, 24, 3], "frame_dtype": "|u1"}
    assert about == expected


def test_vector_actions_are_lists_with_their_shape_in_the_metadata(tmp_path, play, record):
    steps = play(9, action=lambda random: random.normal(size=(2, 3)).astype(np.float32))
    buffer = record(RecordBuffer((20, 24), 3, 9), steps)
    table, about = read(buffer.to_parquet(tmp_path / "a.parquet"))
    assert str(table.schema.field("action").type).startswith("fixed_size_list<")
    found = np.array(table["action"].to_pylist(), np.float32).reshape(-1, *about["action_shape"])
    assert (found == buffer[:].actions).all()


def test_several_features_of_one_dtype_are_restored(tmp_path, play, record):
    steps = play(9, features=lambda random: random.integers(0, 9, 3).tolist())
    buffer = record(RecordBuffer((20, 24), 3, 9, [np.uint8, np.float32, np.uint8, np.uint8, np.uint8]), steps)
    table, _ = read(buffer.to_parquet(tmp_path / "a.parquet", steps=range(2, 7)))
    found = np.stack([table[f"feature_{number}"].to_numpy() for number in range(3)], 1)
    assert (found == buffer[2:7].features).all()


def test_without_frames_there_is_no_frame_column(tmp_path, play, record):
    buffer = record(FramelessRecordBuffer(size=9), play(9))
    table, about = read(buffer.to_parquet(tmp_path / "a.parquet"))
    assert table.column_names == ["episode", "step", "action", "reward", "done"]
    assert about == {"version": 1, "action_shape": []}


def test_bad_input_leaves_no_file(tmp_path, play, record):
    with pytest.raises(BufferStateError, match="nothing was recorded"):
        RecordBuffer(size=3).to_parquet(tmp_path / "a.parquet")
    buffer = record(RecordBuffer((20, 24), 3, 9), play(9))
    with pytest.raises(ParameterError, match="'raw' or 'png'"):
        buffer.to_parquet(tmp_path / "a.parquet", frames="jpeg")
    with pytest.raises(FileWriteError, match="there is no folder"):
        buffer.to_parquet(tmp_path / "missing" / "a.parquet")
    assert list(tmp_path.iterdir()) == []
