"""What cannot be saved is refused, and leaves the folder as it was; what is not there any more is not relied on."""

import errno
import os
from importlib import import_module
from io import FileIO
from pathlib import Path

import numpy as np
import pytest

from sb3_extra_buffers import checkpoints
from sb3_extra_buffers.checkpoints import manifest, writer
from sb3_extra_buffers.errors import FileVersionError, FileWriteError
from sb3_extra_buffers.heaps.state import Log, State

atomic = import_module("sb3_extra_buffers.checkpoints.atomic")
KB = 1 << 10
CONTENT = np.random.default_rng(0).integers(0, 256, 600 * KB, np.uint8)


@pytest.fixture(autouse=True)
def small_segments(monkeypatch):
    """Segments of 64 KB, so that a save takes several; and no waiting for the disk."""
    for module in (manifest, writer):
        monkeypatch.setattr(module, "MAX_SEGMENT_NBYTES", 64 * KB)
    monkeypatch.setattr(os, "fsync", lambda number: None)


def state_of(end):
    cuts = np.arange(0, end + 1, KB)
    log = Log("7", 0, end, lambda low, high: [CONTENT[low:high]], cuts)
    return State({"end": end}, {"few": np.arange(3)}, [log])


def saved(path, end, known=None):
    return checkpoints.save_state(path, state_of(end), {}, known)


def check(path, end):
    state, manifest = checkpoints.load_state(path, verify=True)
    assert state.facts == {"end": end}
    content = np.concatenate([piece.content for piece in state.pieces["7"]])
    np.testing.assert_array_equal(content, CONTENT[:end])
    return manifest


def names(path):
    return sorted(file.name for file in path.iterdir())


def full_disk(left):
    class Full(FileIO):
        written = 0

        def write(self, content, /):
            Full.written += len(content)
            if Full.written > left:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return super().write(content)

    return Full


TOLD = r"save: cannot write .*state: No space left on device\. Make room.* What was saved before is there"


@pytest.mark.parametrize("left", [0, 100 * KB, 300 * KB])
def test_a_save_without_room_leaves_what_was_there_and_nothing_else(left, tmp_path, monkeypatch):
    path = tmp_path / "state"
    known = saved(path, 100 * KB)
    before = names(path)
    with monkeypatch.context() as patch:
        patch.setattr(atomic, "FileIO", full_disk(left))
        with pytest.raises(FileWriteError, match=TOLD):
            saved(path, 600 * KB, known)
    assert names(path) == before
    check(path, 100 * KB)
    saved(path, 600 * KB, known)
    check(path, 600 * KB)


def test_a_first_save_without_room_leaves_an_empty_folder(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(atomic, "FileIO", full_disk(300 * KB))
        with pytest.raises(FileWriteError, match=TOLD):
            saved(tmp_path / "state", 600 * KB)
    assert names(tmp_path / "state") == []


def test_what_a_killed_process_has_left_is_removed_before_room_is_needed(tmp_path, monkeypatch):
    path, seen = tmp_path / "state", []
    known = saved(path, 10 * KB)
    (path / "segment-000009.safetensors").write_bytes(b"half")
    (path / ".segment-000010.safetensors.0123.unfinished").write_bytes(b"half")

    class Looking(FileIO):
        def write(self, content, /):
            seen.append(names(path))
            return super().write(content)

    monkeypatch.setattr(atomic, "FileIO", Looking)
    saved(path, 20 * KB, known)
    assert not any("segment-000009.safetensors" in found for found in seen)
    assert not any(".segment-000010.safetensors.0123.unfinished" in found for found in seen)
    check(path, 20 * KB)


def test_an_interruption_after_the_manifest_is_in_place_keeps_the_new_segments(tmp_path, monkeypatch):
    path = tmp_path / "state"
    known, real = saved(path, 10 * KB), atomic.sync_folder

    def interrupted(folder):
        real(folder)
        if checkpoints.read_manifest(path).serial != known.serial:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(atomic, "sync_folder", interrupted)
        with pytest.raises(KeyboardInterrupt):
            saved(path, 300 * KB, known)
    check(path, 300 * KB)


def test_a_folder_that_may_not_be_written_to_is_named(tmp_path, monkeypatch):
    path, real = tmp_path / "state", os.open
    known = saved(path, 10 * KB)

    def refusing(name, flags, *mode):
        if flags & os.O_CREAT:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(name))
        return real(name, flags, *mode)

    monkeypatch.setattr(os, "open", refusing)
    with pytest.raises(FileWriteError, match=r"cannot write .*state: Permission denied\. .* that you may write to"):
        saved(path, 20 * KB, known)
    check(path, 10 * KB)


def test_a_file_that_cannot_be_removed_keeps_no_save_from_being_made_and_goes_when_it_can(tmp_path, monkeypatch):
    path, real = tmp_path / "state", Path.unlink
    saved(path, 100 * KB)
    old = [name for name in names(path) if name.startswith("segment-")]

    def refusing(file, missing_ok=False):
        if file.name == old[0]:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(file))
        real(file, missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refusing)
        for end in (20 * KB, 30 * KB, 40 * KB):
            saved(path, end)
            check(path, end)
            assert [name for name in names(path) if name in old] == old[:1]  # the others are gone
    saved(path, 50 * KB)
    check(path, 50 * KB)
    assert old[0] not in names(path)


def removed(segment):
    segment.unlink()


def cut(segment):
    content = segment.read_bytes()
    segment.unlink()  # of what is mapped, nothing is cut
    segment.write_bytes(content[:-1])


def exchanged(segment):
    other = next(file for file in segment.parent.glob("segment-*") if file != segment)
    segment.unlink()
    segment.write_bytes(other.read_bytes())


@pytest.mark.parametrize("harm", [removed, cut, exchanged])
def test_a_save_does_not_rely_on_a_segment_that_is_not_there_any_more(harm, tmp_path):
    path = tmp_path / "state"
    known = saved(path, 300 * KB)
    harm(path / "segment-000002.safetensors")
    saved(path, 310 * KB, known)
    check(path, 310 * KB)


def test_no_number_of_a_segment_is_used_twice(tmp_path):
    path = tmp_path / "state"
    known = saved(path, 300 * KB)
    last = max(known.segments)
    for segment in path.glob("segment-*"):
        segment.unlink()
    assert min(saved(path, 310 * KB, known).segments) > last
    assert min(saved(path, 310 * KB).segments) > last


def newer(path):
    with checkpoints.open_arrays(path / "manifest.safetensors") as file:
        arrays, metadata = {name: file[name].copy() for name in file}, {**file.metadata, "version": 2}
    checkpoints.write(path / "manifest.safetensors", arrays, metadata, "checkpoint")


def newer_file(path):
    content = (path / "manifest.safetensors").read_bytes()
    (path / "manifest.safetensors").write_bytes(content.replace(b'"format_version":"1"', b'"format_version":"2"'))


@pytest.mark.parametrize("change", [newer, newer_file])
def test_a_checkpoint_of_a_newer_version_is_not_replaced(change, tmp_path):
    path = tmp_path / "state"
    known = saved(path, 100 * KB)
    change(path)
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    for trusted in (known, None):
        with pytest.raises(FileVersionError, match="format version 2, this version reads up to 1"):
            saved(path, 200 * KB, trusted)
    assert {file.name: file.read_bytes() for file in path.iterdir()} == before


def test_a_damaged_checkpoint_is_replaced(tmp_path):
    path = tmp_path / "state"
    known = saved(path, 100 * KB)
    (path / "manifest.safetensors").write_bytes(b"x" * 500)
    saved(path, 200 * KB, known)
    check(path, 200 * KB)


def test_a_failed_save_over_a_damaged_checkpoint_leaves_all_that_may_belong_to_it_and_nothing_else(
    tmp_path, monkeypatch
):
    path = tmp_path / "state"
    known = saved(path, 100 * KB)
    (path / "manifest.safetensors").write_bytes(b"x" * 500)
    before = names(path)
    monkeypatch.setattr(atomic, "FileIO", full_disk(300 * KB))
    with pytest.raises(FileWriteError, match=TOLD):
        saved(path, 600 * KB, known)
    assert names(path) == before
