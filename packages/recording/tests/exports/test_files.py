"""Files and folders appear only when they are complete."""

import os
from pathlib import Path

import pytest

from sb3_extra_buffers.errors import FileWriteError
from sb3_extra_buffers.recording.exports.files import new_file, new_folder


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def fail_in(opened):
    with opened as place:
        if hasattr(place, "write"):
            place.write(b"half" * 1_000_000)
        else:
            (place / "half").write_bytes(b"half")
        raise ZeroDivisionError


def test_a_file_replaces_the_old_one_when_it_is_complete(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    with new_file(tmp_path / "a", "to_npz") as file:
        file.write(b"new")
        assert (tmp_path / "a").read_bytes() == b"old"
    assert (tmp_path / "a").read_bytes() == b"new"
    assert names(tmp_path) == ["a"]


def test_files_are_seekable(tmp_path):
    with new_file(str(tmp_path / "a"), "to_npz") as file:
        file.write(b"....5678")
        file.seek(0)
        file.write(b"1234")
    assert (tmp_path / "a").read_bytes() == b"12345678"


def test_an_error_keeps_the_old_file(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(ZeroDivisionError):
        fail_in(new_file(tmp_path / "a", "to_npz"))
    with pytest.raises(ZeroDivisionError):
        fail_in(new_folder(tmp_path / "b", "to_dataset"))
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


@pytest.mark.parametrize("opened", [new_file, new_folder])
def test_a_missing_folder_is_named(tmp_path, opened):
    with pytest.raises(FileWriteError, match=r"to_x: cannot write .*there is no folder '.*missing'. Make it first"):
        fail_in(opened(tmp_path / "missing" / "a", "to_x"))
    assert names(tmp_path) == []


@pytest.mark.parametrize("opened", [new_file, new_folder])
@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_write_permission_is_an_error(tmp_path, opened):
    tmp_path.chmod(0o500)
    with pytest.raises(FileWriteError, match="Permission denied"):
        fail_in(opened(tmp_path / "a", "to_x"))


@pytest.mark.parametrize("opened", [new_file, new_folder])
def test_a_name_that_is_too_long_raises_the_error_of_the_system(tmp_path, opened):
    with pytest.raises(FileWriteError, match="too long"):
        fail_in(opened(tmp_path / ("a" * 300), "to_x"))
    assert names(tmp_path) == []


def test_existing_folders_are_not_replaced(tmp_path):
    with pytest.raises(FileWriteError, match="it is a folder"):
        fail_in(new_file(tmp_path, "to_x"))
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(FileWriteError, match="it already exists"):
        fail_in(new_folder(tmp_path / "a", "to_x"))
    assert (tmp_path / "a").read_bytes() == b"old"


def fill_the_disk(path):
    with new_file(path, "to_x") as file:
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, file.fileno())
        os.close(full)
        file.write(b"x" * (1 << 22))


def test_a_full_disk_is_an_error(tmp_path):
    if not Path("/dev/full").exists():
        pytest.skip("there is no device that is always full")
    with pytest.raises(FileWriteError, match="No space left"):
        fill_the_disk(tmp_path / "a")
    assert names(tmp_path) == []


def test_parents_of_a_folder_are_created_at_the_end(tmp_path):
    with new_folder(tmp_path / "space" / "name", "to_x", tmp_path) as draft:
        (draft / "a").write_bytes(b"1")
        assert not (tmp_path / "space").exists()
    assert (tmp_path / "space" / "name" / "a").read_bytes() == b"1"
    assert names(tmp_path) == ["space"]
