"""A recording that an earlier version has written is read as it was meant, to the last bit.

It is frozen: ``python -m scripts.freeze_files --replace`` makes it, on purpose, and no test does.
"""

from pathlib import Path

import numpy as np
import pytest

from sb3_extra_buffers.recording import RecordBuffer, load

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("verify", [True, False])
def test_a_recording_holds_what_was_recorded(verify):
    recording = load(GOLDEN / "recording.safetensors", verify=verify)
    with np.load(GOLDEN / "recording.npz") as expected:
        clip = recording[:]
        for name in ("frames", "rewards", "actions", "dones"):
            found = np.asarray(getattr(clip, name))
            assert (found.dtype.kind, found.shape) == (expected[name].dtype.kind, expected[name].shape), name
            assert found.astype(expected[name].dtype).tobytes() == expected[name].tobytes(), name


def test_a_buffer_that_is_made_of_it_goes_on_recording():
    buffer = RecordBuffer.load(GOLDEN / "recording.safetensors")
    with np.load(GOLDEN / "recording.npz") as expected:
        assert (buffer[:].frames == expected["frames"]).all()
        assert (buffer[:].actions == expected["actions"]).all()
        buffer.add(expected["frames"][0], 1, expected["actions"][0])
    assert (buffer[-1].frame == buffer[0].frame).all()
