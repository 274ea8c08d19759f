"""What cannot be loaded is refused as a whole, with what it is and what to do."""

import json
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

from sb3_extra_buffers import codecs, files
from sb3_extra_buffers.compressed import (
    CompressedDictReplayBuffer,
    CompressedReplayBuffer,
    CompressedRolloutBuffer,
    inspect,
)
from sb3_extra_buffers.errors import (
    BufferStateError,
    FileContentError,
    FileDamagedError,
    FileError,
    FileMissingError,
    FileVersionError,
    FileWriteError,
    ForeignFileError,
    ParameterError,
    UnknownPluginError,
)
from sb3_extra_buffers.errors.install import install_command

pytestmark = pytest.mark.usefixtures("no_waiting")
ACTIONS = spaces.Discrete(5)


@pytest.fixture
def saved(tmp_path, screen, walk, feed):
    """A folder with a buffer in it."""

    def saved(name="checkpoint", **options):
        buffer = CompressedReplayBuffer(30, screen(), ACTIONS, "cpu", **options)
        for step in walk(screen(), ACTIONS, 1, 40):
            feed(step, buffer)
        buffer.save(tmp_path / name)
        return tmp_path / name

    return saved


def test_inspect_tells_what_is_inside(saved, screen):
    found = inspect(saved(compression_method="gzip", layout="cells"))
    assert (found.buffer, found.transitions) == ("CompressedReplayBuffer", 30)
    assert (found.observation_space, found.action_space) == (screen(), ACTIONS)
    assert found.arguments["compression_method"] == "gzip"
    assert found.codecs[""].startswith("gzip")
    assert found.nbytes == sum(file.stat().st_size for file in found.path.iterdir())
    for word in ("CompressedReplayBuffer", "30 transitions", "gzip", "Discrete(5)", "(4, 12, 12)"):
        assert word in str(found)


def test_inspect_does_not_mind_a_file_that_another_process_removes_meanwhile(saved, monkeypatch):
    path, real = saved(), Path.is_file
    expected = inspect(path).nbytes
    old = path / "segment-000009.safetensors"
    old.write_bytes(b"old")

    def late(file):
        found = real(file)
        if file == old:
            file.unlink()
        return found

    monkeypatch.setattr(Path, "is_file", late)
    assert inspect(path).nbytes == expected


@pytest.mark.parametrize(
    ("codec", "home"), [("zstd", "zstd"), ("igzip", "isal"), ("rle-jit", "rle-numba"), ("lz4-block", "lz4")]
)
@pytest.mark.parametrize("layout", ["cells", "frames"])
def test_a_codec_that_is_missing_is_named_with_the_command_that_installs_it(codec, home, layout, saved, monkeypatch):
    there = {name: offers for name, offers in codecs.registry.offers().items() if name in ("none", "rle", "gzip")}
    codecs.registry.refresh()
    with monkeypatch.context() as patch:
        patch.setattr(codecs.registry, "_offers", {**there, codec: there["rle"]})  # installed here, in a way
        path = saved(compression_method=codec, layout=layout)
    codecs.registry.refresh()
    with monkeypatch.context() as patch:
        patch.setattr(codecs.registry, "_offers", there)
        command = re.escape(install_command(f"sb3-extra-buffers-codec-{home}"))
        told = rf"{codec!r} is not .*{command}$"
        with pytest.raises(UnknownPluginError, match=told):
            CompressedReplayBuffer.load(path)
        assert inspect(path).arguments["compression_method"] == codec
    codecs.registry.refresh()


def test_a_codec_that_was_chosen_is_kept_also_if_another_would_be_chosen_now(saved, monkeypatch):
    path = saved(layout="cells")
    chosen = inspect(path).codecs[""]
    there = {name: offers for name, offers in codecs.registry.offers().items() if name in ("none", "rle", "gzip")}
    codecs.registry.refresh()
    with monkeypatch.context() as patch:
        patch.setattr(codecs.registry, "_offers", there)
        if chosen.startswith(("gzip", "rle ", "none")):
            assert CompressedReplayBuffer.load(path, "cpu").memory_report().keys[0].codec == chosen
        else:
            with pytest.raises(UnknownPluginError, match="pip install"):
                CompressedReplayBuffer.load(path)
    codecs.registry.refresh()


def test_another_class_is_refused_by_name(saved):
    told = r"expected a CompressedDictReplayBuffer, found a CompressedReplayBuffer. Use CompressedReplayBuffer"
    with pytest.raises(FileContentError, match=told):
        CompressedDictReplayBuffer.load(saved())


def test_other_arguments_are_refused_and_some_are_allowed(saved):
    path = saved(compression_method="gzip", layout="cells")
    with pytest.raises(BufferStateError, match="load with another compression_method"):
        CompressedReplayBuffer.load(path, compression_method="none")
    assert CompressedReplayBuffer.load(path, "cpu", threads=1)._options.threads == 1


def test_a_folder_that_holds_something_else_is_neither_loaded_nor_saved_to(tmp_path, saved):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    (tmp_path / "file").write_bytes(b"x" * 200)
    buffer = CompressedReplayBuffer.load(saved(), "cpu")
    for name, told in (("other", "no manifest"), ("file", "is a file")):
        with pytest.raises(ForeignFileError, match=told):
            CompressedReplayBuffer.load(tmp_path / name)
        with pytest.raises(FileContentError, match="expected a folder to save to, found"):
            buffer.save(tmp_path / name)
    with pytest.raises(FileMissingError, match=r"nowhere does not exist\. Check the path"):
        CompressedReplayBuffer.load(tmp_path / "nowhere")
    for place in (tmp_path / "nowhere" / "buffer", tmp_path / "file" / "buffer"):
        with pytest.raises(FileWriteError, match=r"save: cannot write .*buffer: .*that you may write to"):
            buffer.save(place)
    assert (tmp_path / "other" / "notes.txt").read_text() == "mine"


def test_a_newer_version_is_told(saved):
    path = saved()
    file = files.open_arrays(path / "manifest.safetensors")
    arrays, metadata = {name: file[name].copy() for name in file}, {**file.metadata, "version": 2}
    files.write(path / "manifest.safetensors", arrays, metadata, "checkpoint")
    for look in (CompressedReplayBuffer.load, inspect):
        with pytest.raises(FileVersionError, match="format version 2, this version reads up to 1"):
            look(path)


def test_a_space_that_a_checkpoint_cannot_hold_is_refused_before_anything_is_written(tmp_path, screen):
    class Own(spaces.Discrete):
        pass

    with pytest.raises(ParameterError, match="Box, Discrete"):
        CompressedReplayBuffer(9, screen(), Own(3), "cpu").save(tmp_path / "checkpoint")
    assert not (tmp_path / "checkpoint").exists()


def test_segments_of_another_checkpoint_are_recognised(tmp_path, saved):
    path, other = saved(), saved("other", compression_method="gzip")
    (segment,) = path.glob("segment-*")
    segment.write_bytes((other / segment.name).read_bytes())
    with pytest.raises(FileDamagedError, match="not the file that the manifest knows"):
        CompressedReplayBuffer.load(path)
    segment.unlink()
    with pytest.raises(FileDamagedError, match=r"segment-000001.safetensors is missing"):
        CompressedReplayBuffer.load(path)


def rewritten(path, change):
    """Change what a manifest says, with correct checksums."""
    name = path / "manifest.safetensors"
    file = files.open_arrays(name)
    arrays, said = {key: file[key].copy() for key in file}, json.loads(json.dumps(file.metadata))
    change(said, arrays)
    files.write(name, arrays, said, "checkpoint")


HUGE = 1 << 60
LIES = {
    "rows": lambda said, _: said["about"]["arguments"].update(buffer_size=HUGE),
    "environments": lambda said, _: said["about"]["arguments"].update(n_envs=HUGE),
    "no environments": lambda said, _: said["about"]["arguments"].update(n_envs=0),
    "pixels": lambda said, _: said["about"]["arguments"]["observation_space"]["space"].update(shape=[HUGE]),
    "actions": lambda said, _: said["about"]["arguments"].update(
        action_space={"space": {"kind": "MultiBinary", "shape": [HUGE]}}
    ),
    "array": lambda said, _: said["arrays"].update({"own/rewards": {"dtype": "F32", "shape": [HUGE], "files": []}}),
    "cells": lambda said, _: said["facts"]["storage"]["heap"].update(cells=HUGE),
    "position": lambda said, _: said["facts"]["own"].update(pos=31),
    "position at the end": lambda said, _: said["facts"]["own"].update(pos=30),
    "begin of a log": lambda said, _: next(iter(said["logs"].values()))[0].__setitem__(
        slice(2), [1 << 70, (1 << 70) + 1]
    ),
    "negative version": lambda said, _: said.update(version=-1),
    "segment": lambda said, _: said["facts"]["storage"]["heap"].update(segments=[[0, 0, 0, 1 << 31]]),
    "no facts": lambda said, _: said.update(facts={}),
    "no storage": lambda said, _: said["facts"].pop("storage"),
    "lengths": lambda said, arrays: arrays["array/storage/heap/lengths"].fill(1 << 30),
    "starts": lambda said, arrays: arrays["array/storage/heap/starts"].fill(1 << 50),
    "code": lambda said, _: said["about"]["arguments"].update(compression_method={"eval": "1"}),
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("layout", ["cells", "frames"])
def test_what_does_not_fit_together_is_refused_before_memory_is_asked_for(lie, layout, saved):
    path = saved(compression_method="gzip", layout=layout)
    rewritten(path, LIES[lie])
    with pytest.raises(FileError):
        CompressedReplayBuffer.load(path, "cpu", verify=True)


SHAPES = {
    "infinite": [float("inf")],
    "not a number": [float("nan")],
    "too many axes": [0] * 70,
    "empty and too large": [0, 1 << 62, 1 << 62],
    "negative": [-1, 0],
    "a fraction": [0.0],
    "a truth": [False],
    "no list": "0",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_that_no_array_has_are_refused(shape, saved, monkeypatch):
    path = saved(layout="cells")
    monkeypatch.setattr(
        import_module("sb3_extra_buffers.checkpoints.array_file"), "_json", json.dumps
    )  # also what is no JSON
    lie = {"dtype": "U8", "shape": SHAPES[shape], "files": []}
    rewritten(path, lambda said, _: said["arrays"].update({"own/lie": lie}))
    for look in (lambda: CompressedReplayBuffer.load(path, "cpu"), lambda: inspect(path)):
        with pytest.raises(FileContentError, match=r"'own/lie' has .*\. It was altered"):
            look()


def test_inspect_refuses_what_it_cannot_tell(saved, monkeypatch):
    path = saved()
    monkeypatch.setattr(import_module("sb3_extra_buffers.checkpoints.array_file"), "_json", json.dumps)
    for count in (float("inf"), float("nan"), "many", None):
        rewritten(path, lambda said, _: said["about"].update(transitions=count))  # noqa: B023
        with pytest.raises(FileContentError, match="expected a buffer, found an unreadable summary"):
            inspect(path)


def test_a_rollout_that_is_not_full_has_room_for_another_row(tmp_path, screen):
    CompressedRolloutBuffer(4, screen(), ACTIONS, "cpu").save(tmp_path / "checkpoint")
    rewritten(tmp_path / "checkpoint", lambda said, _: said["facts"]["own"].update(pos=4))
    with pytest.raises(FileContentError, match=r"'pos' is 4, it must be from 0 to 3"):
        CompressedRolloutBuffer.load(tmp_path / "checkpoint", "cpu")


NUMBERS = ["newest", "pattern", "open", "previous", "sizes", "users", "numbers", "backs", "reach", "last_row"]


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_frames_that_lead_nowhere_are_refused(name, saved):
    path = saved(layout="frames")

    def change(said, arrays):
        array = arrays[f"array/storage/0/store/streams/{name}"]
        array[...] = np.iinfo(array.dtype).max - 1

    rewritten(path, change)
    with pytest.raises(FileError):
        CompressedReplayBuffer.load(path, "cpu")
