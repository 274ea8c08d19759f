"""The package imports nothing heavy; dummy arrays, clips, allocation and dtypes."""

import subprocess
import sys

import numpy as np
import pytest

from sb3_extra_buffers.recording import Clip, DummyArray, RecordBuffer, force_alloc_mem
from sb3_extra_buffers.recording.casting import as_dtype

HEAVY = ("torch", "gymnasium", "stable_baselines3", "matplotlib", "PIL", "imageio", "tqdm", "rich", "pandas", "pyarrow")


def test_nothing_heavy_is_imported_and_nothing_is_printed():
    code = f"import sys, sb3_extra_buffers.recording; print([name for name in {HEAVY!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (found.stdout, found.stderr) == ("[]\n", "")


def test_a_dummy_array_accepts_writes_and_keeps_nothing():
    array = DummyArray()
    array[3] = array[..., 2:5] = "anything"
    array.fill(1)
    assert array.transpose(0, 2, 1) is array
    assert array.nbytes == 0
    assert repr(array) == "DummyArray()"
    with pytest.raises(TypeError, match="nothing is kept"):
        _ = array[0]


def test_a_clip_is_a_sequence_of_steps():
    frames, dones = np.zeros((2, 4, 5, 3), np.uint8), np.array([False, True])
    clip = Clip(frames, np.array([1.0, 2.0]), np.array([3, 4]), None, dones)
    assert len(clip) == 2
    assert clip[1].action == 4
    assert clip[1].done is True
    assert clip[-2].frame.shape == (4, 5, 3)
    assert [step.reward for step in clip] == [1.0, 2.0]


@pytest.mark.parametrize("method", ["auto", "none"])
def test_allocated_memory_is_used_for_recording(method):
    buffer = RecordBuffer((16, 16), 3, 5, ["uint8", "float32", "uint8"], compression_method=method)
    force_alloc_mem(buffer, 7)
    assert (np.asarray(buffer.frames) == 7).all()
    assert buffer.rewards.tolist() == buffer.actions.tolist() == [7] * 5
    buffer.add(np.ones((16, 16, 3), np.uint8), 1, 1, [2])
    assert (buffer[0].frame == 1).all()
    assert len(buffer) == 1


@pytest.mark.parametrize("name", ["uint8", "np.uint8", "numpy.uint8", np.uint8, np.dtype(np.uint8), "u1"], ids=str)
def test_dtypes_can_be_given_by_name(name):
    assert as_dtype("RecordBuffer", name) == np.uint8
