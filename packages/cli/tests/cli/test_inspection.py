"""What is in a checkpoint or a file of arrays, and whether it is whole."""

import json
import os
import shlex
import shutil

import numpy as np
import pytest
from gymnasium import spaces

from sb3_extra_buffers import checkpoints
from sb3_extra_buffers.codecs import CodecSpec
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
    checkpoints.write(
        tmp_path / "arrays", {"numbers": np.arange(6, dtype=np.int32).reshape(2, 3)}, {"by": "us"}, "notes"
    )
    said = json.loads(run("inspect", tmp_path / "arrays", "--json")[0])
    assert said["kind"] == "notes"
    assert said["metadata"] == {"by": "us"}
    assert said["arrays"] == {"numbers": "int32[2, 3]"}
    title, *lines = run("inspect", tmp_path / "arrays")[0].splitlines()
    assert title.startswith(f"{tmp_path / 'arrays'}: notes, ")
    assert [line.split(maxsplit=1) for line in lines] == [["metadata", "{'by': 'us'}"], ["numbers", "int32[2, 3]"]]


def test_a_recording_tells_its_steps_its_frames_and_its_codec_in_lines(run, tmp_path):
    """Also without the distribution that makes one."""
    codec = {"name": "zstd", "params": {"level": 6, "checksum": False}}
    said = {"recorded_by": "RecordBuffer", "steps": 1500, "frames": {"shape": [84, 96, 3], "dtype": "uint8"}}
    said["frames"]["codec"] = codec
    arrays = {"rewards": np.zeros(150, np.float32), "actions": np.zeros((150, 2), np.int64)}
    size = checkpoints.write(tmp_path / "doom", {**arrays, "frames.payloads": np.zeros(9, np.uint8)}, said, "recording")
    out, _, code = run("inspect", tmp_path / "doom")
    assert code == 0
    title, *lines = out.splitlines()
    expected = f"doom: recording of RecordBuffer, 150 steps, the last of 1,500, {size:,} bytes"
    assert title == f"{tmp_path}/{expected}"
    assert [line.split(maxsplit=1) for line in lines] == [
        ["frames", "84 x 96 x 3, uint8"],
        ["codec", str(CodecSpec.from_json(codec))],
        ["actions", "int64[150, 2]"],
        ["rewards", "float32[150]"],
    ]


@pytest.mark.parametrize("said", [[], {"recorded_by": "me", "steps": 3}, {"recorded_by": "I", "steps": 3, "frames": 7}])
def test_a_recording_that_says_nonsense_is_one_sentence(run, tmp_path, said):
    checkpoints.write(tmp_path / "doom", {"rewards": np.zeros(3)}, said, "recording")
    out, err, code = run("inspect", tmp_path / "doom")
    assert (out, code) == ("", 2)
    assert "doom: expected a recording, found invalid metadata (" in err
    assert err.count("\n") == 1


def test_what_is_whole_is_said_to_be(run, checkpoint):
    out, err, code = run("verify", checkpoint)
    assert (err, code) == ("", 0)
    assert out.startswith(f"{checkpoint}: whole.")
    segment = next(checkpoint.glob("segment-*"))
    assert run("verify", segment)[0].startswith(f"{segment}: whole.")


def test_what_cannot_be_inspected_is_not_said_to_be_whole(run, checkpoint, tmp_path):
    name = checkpoint / "manifest.safetensors"
    with checkpoints.open_arrays(name) as file:
        arrays, said = {key: file[key].copy() for key in file}, dict(file.metadata)
        said["about"] = {**said["about"], "arguments": {"observation_space": {"space": {"kind": "Sphere"}}}}
        checkpoints.write(name, arrays, said, "checkpoint")
    checkpoints.write(tmp_path / "doom", {"rewards": np.zeros(3)}, {"steps": 3}, "recording")
    for path in (checkpoint, tmp_path / "doom"):
        for command in ("inspect", "verify"):
            out, err, code = run(command, path)
            assert (out, code) == ("", 2)
            assert "expected a" in err


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
@pytest.mark.parametrize("above", ["run 1", "runs/first"])
def test_a_folder_that_contains_a_checkpoint_is_refused_with_the_command_for_it(run, checkpoint, command, above):
    root = checkpoint.parent / "elsewhere"
    inside = root / above
    inside.parent.mkdir(parents=True)
    checkpoint.rename(inside)
    out, err, code = run(command, root)
    assert (out, code) == ("", 2)
    assert f"{root} is not a file of sb3-extra-buffers: the folder has no manifest.safetensors. " in err
    assert "It contains a checkpoint. Run: " in err
    program, *words = shlex.split(err.partition("Run: ")[2])
    assert program == "sb3-buffers"
    out, _, code = run(*words)
    assert code == 0
    assert str(inside) in out


def test_of_several_checkpoints_in_a_folder_the_newest_is_named(run, checkpoint):
    for number, name in enumerate(("b", "c", "a")):
        copy = checkpoint.parent / "runs" / name
        shutil.copytree(checkpoint, copy)
        os.utime(copy / "manifest.safetensors", (number, number))
    _, err, _ = run("inspect", checkpoint.parent / "runs")
    assert err.endswith(f"It contains 3 checkpoints. Run: sb3-buffers inspect {checkpoint.parent}/runs/a\n")


@pytest.mark.parametrize("command", ["inspect", "verify"])
def test_files_of_others_are_refused(run, tmp_path, command):
    (tmp_path / "photo.png").write_bytes(b"\x89PNG and so on, for a while")
    _, err, code = run(command, tmp_path / "photo.png")
    assert code == 2
    assert "is not a file of sb3-extra-buffers" in err
    _, err, code = run(command, tmp_path)
    assert code == 2
    assert "the folder has no manifest.safetensors" in err
