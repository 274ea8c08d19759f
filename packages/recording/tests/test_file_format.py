"""Closed, damaged, invalid, foreign and missing files."""

import os
import pickle

import numpy as np
import pytest

from sb3_extra_buffers import checkpoints
from sb3_extra_buffers.errors import (
    BufferStateError,
    FileContentError,
    FileDamagedError,
    FileMissingError,
    FileWriteError,
    ForeignFileError,
    UnknownPluginError,
)
from sb3_extra_buffers.recording import FramelessRecordBuffer, RecordBuffer, load
from sb3_extra_buffers.recording.file_format import KIND


@pytest.fixture
def path(play, record, tmp_path):
    record(RecordBuffer((20, 24), 3, 15), play(20)).save(tmp_path / "recording", "gzip")
    return tmp_path / "recording"


def test_a_closed_recording_raises_an_error_that_says_so(path):
    with load(path) as saved:
        clip = saved[:]
    for act in (
        lambda: saved[0],
        lambda: saved[:],
        lambda: saved.read(0, 1),
        lambda: list(saved),
        lambda: saved.episodes,
        lambda: saved.statistics(),
        lambda: saved.memory,
        lambda: saved.nbytes,
        lambda: saved.verify(),
        lambda: saved.save(path),
    ):
        with pytest.raises(BufferStateError, match=r"its file was closed\. Open it again: load"):
            act()
    assert "closed" in repr(saved)
    assert len(clip) == len(load(path)) == 15  # the clip and the file are still usable


def test_damaged_frames_raise_an_error_instead_of_being_returned(path):
    content = bytearray(path.read_bytes())
    saved = load(path)
    payloads = saved._file["frames.payloads"].tobytes()
    at = content.index(payloads) + len(payloads) // 2
    content[at] ^= 1
    path.write_bytes(content)
    damaged = load(path)
    with pytest.raises(FileDamagedError, match="the frames of block 0"):
        _ = damaged[3]
    assert len(damaged.without_frames()) == 15
    with pytest.raises(FileDamagedError, match=r"frames\.payloads"):
        load(path, verify=True)


def test_a_truncated_file_is_refused(path):
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(FileDamagedError):
        load(path)


def test_files_that_are_not_recordings_are_refused(tmp_path, path):
    (tmp_path / "text").write_text("a recording?")
    with pytest.raises(ForeignFileError, match="not a file of sb3-extra-buffers"):
        load(tmp_path / "text")
    checkpoints.write(tmp_path / "other", {"a": np.arange(3)}, {}, "buffer")
    with pytest.raises(FileContentError, match="expected the kind 'recording'"):
        load(tmp_path / "other")
    for metadata in ({"recording_version": 2}, {}, []):
        checkpoints.write(tmp_path / "newer", {"a": np.arange(3)}, metadata, KIND)
        with pytest.raises(FileContentError, match=r"expected version 1 of a recording.*--upgrade"):
            load(tmp_path / "newer")
    with pytest.raises(FileMissingError, match="nothing does not exist"):
        load(tmp_path / "nothing")


def test_a_missing_codec_is_named_when_the_file_is_opened(path, tmp_path):
    with checkpoints.open_arrays(path) as file:
        metadata = {**file.metadata, "frames": {**file.metadata["frames"], "codec": {"name": "brotli", "params": {}}}}
        checkpoints.write(tmp_path / "other", dict(file), metadata, KIND)
    with pytest.raises(UnknownPluginError, match="brotli"):
        load(tmp_path / "other")


def test_a_record_buffer_does_not_load_a_recording_without_frames(play, record, tmp_path):
    record(FramelessRecordBuffer(size=15), play(20)).save(tmp_path / "recording")
    with pytest.raises(FileContentError, match=r"a recording with frames.*FramelessRecordBuffer\.load"):
        RecordBuffer.load(tmp_path / "recording")


@pytest.mark.skipif(os.name == "nt", reason="folders are opened otherwise")
def test_a_failed_save_keeps_the_old_file(path, play, record, tmp_path):
    before = path.read_bytes()
    buffer = record(RecordBuffer((20, 24), 3, 15), play(5))
    with pytest.raises(FileWriteError, match="Make the folder first"):
        buffer.save(tmp_path / "no folder" / "recording")
    with pytest.raises(FileWriteError):
        buffer.save(tmp_path)
    with pytest.raises(UnknownPluginError):
        buffer.save(path, "brotli")
    assert path.read_bytes() == before
    assert sorted(item.name for item in tmp_path.iterdir()) == ["recording"]
    assert len(buffer) == 5


def test_errors_can_be_pickled(path):
    saved = load(path)
    saved.close()
    with pytest.raises(BufferStateError) as caught:
        _ = saved[0]
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


INVALID = {
    "steps": -1,
    "max_size": 0,
    "begins_whole": "yes",
    "recorded_by": None,
    "asked": None,
    "asked.channels": "middle",
    "asked.channels of none": [],
    "asked.action_dtype": "float32",
    "asked.action_dtype of none": 5,
    "asked.action_shape": [2],
    "asked.action_shape of none": "wide",
    "frames": [],
    "frames.shape": [1 << 20, 1 << 20, 3],
    "frames.shape of none": [0, 24, 3],
    "frames.dtype": "object",
    "frames.dtype of none": "nonsense",
    "frames.per_block": 1 << 60,
    "frames.per_block of none": 0,
    "frames.codec": "gzip",
}


@pytest.mark.parametrize("case", INVALID)
def test_a_file_with_invalid_metadata_is_refused_when_it_is_opened(path, tmp_path, case):
    with checkpoints.open_arrays(path) as file:
        metadata, name = dict(file.metadata), case.split(" ")[0]
        part, _, inside = name.partition(".")
        metadata[part] = {**metadata[part], inside: INVALID[case]} if inside else INVALID[case]
        checkpoints.write(tmp_path / "other", dict(file), metadata, KIND)
    with pytest.raises(FileDamagedError, match=r"not written by save"):
        load(tmp_path / "other")


def test_a_file_with_missing_metadata_is_refused_when_it_is_opened(path, tmp_path):
    with checkpoints.open_arrays(path) as file:
        for name in sorted(file.metadata.keys() - {"recording_version", "asked"}):
            metadata = {key: value for key, value in file.metadata.items() if key != name}
            checkpoints.write(tmp_path / "other", dict(file), metadata, KIND)
            with pytest.raises(FileDamagedError, match=r"not written by save"):
                load(tmp_path / "other")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rewards", np.float32(1)),
        ("actions", np.arange(3)),
        ("dones", np.zeros(15, np.uint8)),
        ("features.1", np.arange(15)),
        ("frames.ends", np.array([-1], np.int64)),
        ("frames.ends", np.array([1 << 60], np.int64)),
        ("frames.ends", np.array([], np.int64)),
        ("frames.checksums", np.zeros(1, np.int64)),
        ("frames.prepared", np.zeros(2, np.uint8)),
        ("frames.payloads", np.zeros((2, 2), np.uint8)),
    ],
)
def test_a_file_with_inconsistent_arrays_is_refused_when_it_is_opened(path, tmp_path, name, value):
    with checkpoints.open_arrays(path) as file:
        checkpoints.write(tmp_path / "other", {**file, name: value}, file.metadata, KIND)
    with pytest.raises(FileDamagedError, match=r"not written by save"):
        load(tmp_path / "other")
