"""NPZ files restore every array exactly."""

import numpy as np
import pytest

from sb3_extra_buffers.errors import BufferStateError, FileWriteError
from sb3_extra_buffers.recording import FramelessRecordBuffer, RecordBuffer
from sb3_extra_buffers.recording.exports import npz


def test_every_array_is_restored(tmp_path, play, record, monkeypatch):
    monkeypatch.setattr("sb3_extra_buffers.recording.protocol._BATCH_SIZE", 3 * 20 * 24 * 3)
    steps = play(23, features=lambda random: [int(random.integers(9)), float(np.float32(random.normal()))])
    buffer = record(RecordBuffer((20, 24), 3, 17, [np.uint8, np.float32, np.uint8, np.float32]), steps)
    for compressed in (True, False):
        path = buffer.to_npz(tmp_path / "a.npz", compressed=compressed)
        with np.load(path) as found:
            assert set(found) == {"frames", "rewards", "actions", "dones", "features"}
            for name, array in found.items():
                expected = getattr(buffer[:], name)
                assert array.dtype == expected.dtype
                assert array.shape == expected.shape
                assert array.tobytes() == expected.tobytes()


def test_steps_can_be_selected(tmp_path, play, record):
    buffer = record(RecordBuffer((20, 24), 3, 17), play(17, action=lambda random: random.normal(size=2)))
    with np.load(buffer.to_npz(tmp_path / "a.npz", steps=buffer.episodes[1])) as found:
        assert (found["frames"] == buffer[7:14].frames).all()
        assert (found["actions"] == buffer[7:14].actions).all()


def test_without_frames_there_is_no_frame_array(tmp_path, play, record):
    buffer = record(FramelessRecordBuffer(size=9), play(9))
    with np.load(buffer.to_npz(tmp_path / "a.npz")) as found:
        assert set(found) == {"rewards", "actions", "dones"}


def test_errors_leave_no_file(tmp_path, play, record, monkeypatch):
    with pytest.raises(BufferStateError, match="nothing was recorded"):
        RecordBuffer((20, 24), 3, 17).to_npz(tmp_path / "a.npz")
    buffer = record(RecordBuffer((20, 24), 3, 17), play(17))
    with pytest.raises(FileWriteError, match="no folder"):
        buffer.to_npz(tmp_path / "missing" / "a.npz")

    def broken(*arguments, **options):
        raise ZeroDivisionError

    monkeypatch.setattr(npz.npy, "write_array", broken)
    with pytest.raises(ZeroDivisionError):
        buffer.to_npz(tmp_path / "a.npz")
    assert list(tmp_path.iterdir()) == []
