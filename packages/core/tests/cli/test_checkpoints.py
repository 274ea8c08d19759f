"""What is in a checkpoint or a file of arrays, and whether it is whole."""

import json

import numpy as np
import pytest
from gymnasium import spaces

from sb3_extra_buffers import files
from sb3_extra_buffers.compressed import CompressedReplayBuffer


@pytest.fixture
def checkpoint(tmp_path):
    """A small replay buffer, saved."""
    buffer = CompressedReplayBuffer(64, spaces.Box(0, 255, (40, 40), np.uint8), spaces.Discrete(2), "cpu")
    random = np.random.default_rng(0)
    for number in range(50):
        row = random.integers(0, 255, (1, 40, 40), dtype=np.uint8)
        buffer.add(row, row, np.array([[0]]), np.array([number]), np.array([False]), [{}])
    buffer.save(tmp_path / "buffer")
    return tmp_path / "buffer"


def test_a_checkpoint_tells_what_it_holds(run, checkpoint):
    out, _, code = run("inspect", checkpoint)
    assert code == 0
    assert "CompressedReplayBuffer" in out
    assert "Box(0, 255, (40, 40), uint8)" in out
    said = json.loads(run("inspect", checkpoint, "--json")[0])
    assert said["kind"] == "checkpoint"
    assert said["transitions"] == 50
    assert said["arguments"]["buffer_size"] == 64
    assert said["bytes"] == sum(file.stat().st_size for file in checkpoint.iterdir())


def test_a_file_of_arrays_tells_what_it_holds(run, tmp_path):
    files.write(tmp_path / "arrays", {"numbers": np.arange(6, dtype=np.int32).reshape(2, 3)}, {"by": "us"}, "notes")
    said = json.loads(run("inspect", tmp_path / "arrays", "--json")[0])
    assert said["kind"] == "notes"
    assert said["metadata"] == {"by": "us"}
    assert said["arrays"] == {"numbers": "int32[2, 3]"}
    assert "numbers: int32[2, 3]" in run("inspect", tmp_path / "arrays")[0]


def test_what_is_whole_is_said_to_be(run, checkpoint):
    out, err, code = run("verify", checkpoint)
    assert (err, code) == ("", 0)
    assert out.startswith(f"{checkpoint}: whole.")
    segment = next(checkpoint.glob("segment-*"))
    assert run("verify", segment)[0].startswith(f"{segment}: whole.")


def test_damage_is_named(run, checkpoint):
    segment = next(checkpoint.glob("segment-*"))
    content = bytearray(segment.read_bytes())
    content[-5] ^= 1
    segment.write_bytes(content)
    out, err, code = run("verify", checkpoint)
    assert (out, code) == ("", 2)
    assert err.startswith(f"error: {segment} is damaged: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", ["inspect", "verify"])
def test_files_of_others_are_refused(run, tmp_path, command):
    (tmp_path / "photo.png").write_bytes(b"\x89PNG and so on, for a while")
    _, err, code = run(command, tmp_path / "photo.png")
    assert code == 2
    assert "is not a file of sb3-extra-buffers" in err
    _, err, code = run(command, tmp_path)
    assert code == 2
    assert "the folder has no manifest.safetensors" in err
