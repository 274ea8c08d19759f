"""A loaded buffer behaves like the saved one."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from sb3_extra_buffers.checkpoints import open_arrays, write
from sb3_extra_buffers.errors import FileContentError, ForeignFileError, ObservationError, ParameterError
from sb3_extra_buffers.recording import FramelessRecordBuffer, RecordBuffer, load

CUBE = np.arange(64, dtype=np.uint8).reshape(4, 4, 4)


def again(buffer, path, **options):
    """Save a buffer, save the file again with another codec, and load it."""
    buffer.save(path)
    load(path).save(f"{path} again", "rle")
    return type(buffer).load(f"{path} again", **options)


@pytest.mark.parametrize("channels", ["first", "last"])
def test_the_order_of_channels_is_loaded_even_for_ambiguous_shapes(tmp_path, channels):
    buffer = RecordBuffer((4, 4), 4, 9, channels=channels)
    buffer.add(CUBE, 0, 0)
    loaded = again(buffer, tmp_path / "recording")
    loaded.add(CUBE, 0, 0)
    expected = CUBE if channels == "last" else CUBE.transpose(1, 2, 0)
    assert (loaded[:].frames == expected).all()


def test_a_loaded_buffer_accepts_the_same_frames(tmp_path):
    last = np.zeros((5, 6, 3), np.uint8)
    first = last.transpose(2, 0, 1)
    for channels in ("auto", "last"):
        buffer = RecordBuffer((5, 6), 3, 9, channels=channels)
        buffer.add(last, 0, 0)
        loaded = again(buffer, tmp_path / "recording")
        if channels == "auto":
            loaded.add(first, 0, 0)
            continue
        with pytest.raises(ObservationError, match="shape"):
            loaded.add(first, 0, 0)


@pytest.mark.parametrize("kind", [RecordBuffer, FramelessRecordBuffer])
def test_actions_without_a_given_dtype_stay_exact_after_loading(tmp_path, kind):
    buffer = kind((4, 4), 4, 9, channels="last")
    buffer.add(CUBE, 0, np.float32(0.5))
    loaded = again(buffer, tmp_path / "recording")
    for recording in (buffer, loaded):
        with pytest.raises(ObservationError, match="action_dtype= and action_shape="):
            recording.add(CUBE, 0, 0.1)
        assert len(recording) == 1
        recording.reset()
        recording.add(CUBE, 0, [1, 2])  # sets dtype and shape again
        assert recording[:].actions.tolist() == [[1, 2]]


def test_given_dtype_and_shape_of_actions_are_loaded(tmp_path):
    buffer = FramelessRecordBuffer(size=9, action_dtype="float32", action_shape=(2,))
    buffer.add(None, 0, [0.5, 0.1])
    loaded = again(buffer, tmp_path / "recording")
    for recording in (buffer, loaded):
        recording.add(None, 0, [0.1, 1])
        assert recording[-1].action.tolist() == np.float32([0.1, 1]).tolist()
        recording.reset()
        with pytest.raises(ObservationError, match=r"expected shape \(2,\)"):
            recording.add(None, 0, 1)


def test_arguments_of_load_override_the_file(tmp_path):
    buffer = RecordBuffer((4, 4), 4, 9, channels="last")
    buffer.add(CUBE, 0, 1)
    loaded = again(buffer, tmp_path / "recording", channels="first", action_dtype="float64")
    loaded.add(CUBE, 0, 0.5)
    assert (loaded[1].frame == CUBE.transpose(1, 2, 0)).all()
    assert loaded[:].actions.tolist() == [1, 0.5]
    with pytest.raises(ObservationError, match=r"actions is of shape \(\), expected shape \(3,\)"):
        again(buffer, tmp_path / "recording", action_shape=3)
    with pytest.raises(ParameterError, match="Use 'first' or 'last'"):
        again(buffer, tmp_path / "recording", channels="auto")


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space, as Linux can")
@pytest.mark.parametrize("size", [1 << 40, 1 << 61, (1 << 62) - 1])
@pytest.mark.parametrize("kind", [RecordBuffer, FramelessRecordBuffer])
@pytest.mark.parametrize("options", [{}, {"compression_method": "none"}, {"layout": "frames"}], ids=str)
def test_a_file_that_claims_a_buffer_larger_than_memory_is_refused_by_name(size, kind, options, tmp_path, record, play):
    resource, path = pytest.importorskip("resource"), tmp_path / "recording"
    record(RecordBuffer((20, 24), 3, 15), play(12)).save(path)
    with open_arrays(path) as file:
        arrays, metadata = {name: file[name].copy() for name in file}, {**file.metadata, "max_size": size}
    write(path, arrays, metadata, "recording")
    limit = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), limit[1]))
    try:
        with pytest.raises(FileContentError, match=r"recording: expected a recording that fits into memory.*12 steps"):
            kind.load(path, **({} if kind is FramelessRecordBuffer else options))
        assert len(kind.load(path, 9)) == 9
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limit)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no FIFO")
def test_a_pipe_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "recording")
    for read in (load, RecordBuffer.load, FramelessRecordBuffer.load):
        with pytest.raises(ForeignFileError, match="it is a pipe or a device"):
            read(tmp_path / "recording")


def test_what_a_killed_save_has_left_is_removed_by_the_next_save(tmp_path, record, play):
    (tmp_path / ".recording.0123456789abcdef.unfinished").write_bytes(b"half")
    record(RecordBuffer((20, 24), 3, 15), play(12)).save(tmp_path / "recording")
    assert [path.name for path in tmp_path.iterdir()] == ["recording"]
