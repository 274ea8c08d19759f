"""The golden recording, written by an earlier version, is read exactly.

Only ``python -m scripts.freeze_files --replace`` writes it; no test does.
"""

from pathlib import Path

import numpy as np
import pytest

from sb3_extra_buffers.recording import RecordBuffer, load

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("verify", [True, False])
def test_the_golden_recording_holds_the_recorded_values(verify):
    recording = load(GOLDEN / "recording.safetensors", verify=verify)
    with np.load(GOLDEN / "recording.npz") as expected:
        clip = recording[:]
        for name in ("frames", "rewards", "actions", "dones"):
            found = np.asarray(getattr(clip, name))
            assert (found.dtype.kind, found.shape) == (expected[name].dtype.kind, expected[name].shape), name
            assert found.astype(expected[name].dtype).tobytes() == expected[name].tobytes(), name


def test_a_buffer_loaded_from_the_golden_recording_continues_recording():
    buffer = RecordBuffer.load(GOLDEN / "recording.safetensors")
    with np.load(GOLDEN / "recording.npz") as expected:
        assert (buffer[:].frames == expected["frames"]).all()
        assert (buffer[:].actions == expected["actions"]).all()
        buffer.add(expected["frames"][0], 1, expected["actions"][0])
    assert (buffer[-1].frame == buffer[0].frame).all()
