"""What is loaded lies in its files until it is looked at, and nobody who writes to it changes them."""

import errno
import json
import mmap
import os
from pathlib import Path

import numpy as np
import pytest

from sb3_extra_buffers import checkpoints
from sb3_extra_buffers.checkpoints import manifest, memory_map
from sb3_extra_buffers.checkpoints.manifest import BLOCK_NBYTES
from sb3_extra_buffers.errors import FileReadError
from sb3_extra_buffers.heaps.state import Log, State
from sb3_extra_buffers.memory import untouched

COUNT = 5 * BLOCK_NBYTES // 8 + 1234  # five whole blocks of numbers, and a part of one


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda number: None)


@pytest.fixture(params=[True, False], ids=["mapped", "copied"])
def is_mapped(request, monkeypatch):
    """Whether the system can map parts of files; what comes of it is the same."""
    if not request.param:
        monkeypatch.setattr(memory_map, "can_map", lambda: False)
        monkeypatch.setattr(manifest, "can_map", lambda: False)
    return request.param


def saved(path, *versions):
    """Save one array after the other to the same place; returns the last one."""
    known = None
    for array in versions:
        known = checkpoints.save_state(path, State({}, {"numbers": array, "few": np.arange(3)}), {}, known)
    return versions[-1]


def opened():
    """How many files the process has open, where the system tells."""
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


def changed(array, *places):
    array = array.copy()
    array[list(places)] += 1000
    return array


@pytest.fixture
def numbers():
    return np.random.default_rng(0).integers(1, 1 << 60, COUNT)


def test_blocks_from_several_files_are_one_array(tmp_path, numbers, is_mapped):
    newest = saved(tmp_path / "state", numbers, changed(numbers, 5, COUNT - 1), changed(numbers, 100_000))
    state, found = checkpoints.load_state(tmp_path / "state", verify=True)
    assert len(found.segments) > 1
    np.testing.assert_array_equal(state.arrays["numbers"], newest)


def test_an_array_can_lie_at_the_beginning_of_a_longer_one(tmp_path, numbers, is_mapped):
    saved(tmp_path / "state", numbers)
    state, _ = checkpoints.load_state(tmp_path / "state")
    whole = untouched(COUNT + 100_000, np.int64)
    state.begin_of(numbers=whole)
    np.testing.assert_array_equal(whole[:COUNT], numbers)
    assert not whole[COUNT:].any()


def test_memory_that_is_no_mapping_gets_a_copy(tmp_path, numbers):
    saved(tmp_path / "state", numbers)
    state, _ = checkpoints.load_state(tmp_path / "state")
    for target in (np.zeros(COUNT, np.int64), untouched(COUNT + 1, np.int64)[1:], np.zeros((COUNT, 2), np.int64)[:, 0]):
        state.copy_to(numbers=target)
        np.testing.assert_array_equal(target, numbers)


def test_what_is_written_to_a_loaded_array_reaches_no_file_and_no_other_array(tmp_path, numbers, is_mapped):
    path = tmp_path / "state"
    saved(path, numbers)
    state, _ = checkpoints.load_state(path)
    target = untouched(COUNT, np.int64)
    state.copy_to(numbers=target)
    target[:] = 1
    state.arrays["numbers"][::2] = 2
    assert (target == 1).all()
    again, _ = checkpoints.load_state(path, verify=True)
    np.testing.assert_array_equal(again.arrays["numbers"], numbers)


def test_files_may_be_removed_while_nothing_was_looked_at_yet(tmp_path, numbers, is_mapped):
    saved(tmp_path / "state", numbers)
    state, _ = checkpoints.load_state(tmp_path / "state")
    for file in (tmp_path / "state").iterdir():
        file.unlink()
    target = untouched(COUNT, np.int64)
    state.copy_to(numbers=target)
    np.testing.assert_array_equal(target, numbers)
    np.testing.assert_array_equal(state.arrays["numbers"], numbers)


def test_whole_blocks_are_whole_pages_of_their_file(tmp_path, numbers):
    saved(tmp_path / "state", numbers)
    (segment,) = (tmp_path / "state").glob("segment-*")
    content = segment.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:begin])
    whole = [entry for entry in header.values() if entry.get("shape") == [BLOCK_NBYTES]]
    assert len(whole) == 5
    assert all((begin + entry["data_offsets"][0]) % mmap.PAGESIZE == 0 for entry in whole)


def test_no_file_stays_open_for_what_was_dropped(tmp_path, numbers):
    saved(tmp_path / "state", numbers)
    before = opened()
    state, _ = checkpoints.load_state(tmp_path / "state")
    array = state.arrays["numbers"]
    del state
    assert opened() == before
    np.testing.assert_array_equal(array, numbers)


@pytest.mark.skipif(not memory_map.can_map(), reason="nothing is mapped on this system")
def test_a_state_of_many_files_is_loaded_and_held_by_a_process_that_may_open_few(tmp_path, numbers, monkeypatch):
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(manifest, "MAX_SEGMENT_NBYTES", BLOCK_NBYTES)
    arrays = dict.fromkeys("abcdefgh", numbers)
    log = Log("1", 0, 1000, lambda low, high: [np.arange(low, high).astype(np.uint8)])
    saved_as = checkpoints.save_state(tmp_path / "state", State({}, arrays, [log]), {})
    assert len(saved_as.segments) > 40
    before, limits = opened(), resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(file.name) for file in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 8, limits[1]))
    try:
        state, _ = checkpoints.load_state(tmp_path / "state", verify=True)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert opened() == before
    assert all((state.arrays[name] == numbers).all() for name in arrays)
    assert state.pieces["1"][0].content.tolist() == [number % 256 for number in range(1000)]


def test_another_file_of_the_same_name_is_not_taken_for_the_one_that_was_loaded(tmp_path, numbers, is_mapped):
    saved(tmp_path / "state", numbers)
    saved(tmp_path / "other", numbers + 1)
    state, _ = checkpoints.load_state(tmp_path / "state")
    for file in (tmp_path / "other").iterdir():
        file.replace(tmp_path / "state" / file.name)
    target = untouched(COUNT, np.int64)
    state.copy_to(numbers=target)
    np.testing.assert_array_equal(target, numbers)


REFUSALS = {
    errno.EMFILE: "Too many open files. Close files, or raise the limit",
    errno.EACCES: "Permission denied. Ask its owner",
    errno.EIO: "Input/output error",
}


@pytest.mark.parametrize("number", REFUSALS, ids=errno.errorcode.get)
def test_a_file_that_the_system_does_not_open_is_named_with_what_to_do(number, tmp_path, numbers, monkeypatch):
    saved(tmp_path / "state", numbers)

    def refusing(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "open", refusing)
    with pytest.raises(FileReadError, match=rf"manifest.safetensors cannot be opened: {REFUSALS[number]}"):
        checkpoints.load_state(tmp_path / "state")


@pytest.mark.skipif(not memory_map.can_map(), reason="nothing is mapped on this system")
def test_what_would_lie_beyond_a_file_or_beside_pages_is_refused(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(2 * mmap.PAGESIZE))
    memory = memory_map.allocate_mappable(4 * mmap.PAGESIZE)
    number = os.open(path, os.O_RDONLY)
    try:
        for target, offset in ((memory, 0), (memory[: mmap.PAGESIZE], 100), (memory[100 : 100 + mmap.PAGESIZE], 0)):
            with pytest.raises(ValueError, match="a file"):
                memory_map.map_over(target, number, offset)
    finally:
        os.close(number)
    assert not memory_map.is_mappable(np.zeros(1 << 20, np.uint8)[1:])
