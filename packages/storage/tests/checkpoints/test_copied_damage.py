"""What is copied out of a file that was loaded is compared with its checksums first: a copy does not mend damage."""

import os

import numpy as np
import pytest

from sb3_extra_buffers import checkpoints
from sb3_extra_buffers.checkpoints import manifest, memory_map
from sb3_extra_buffers.checkpoints.checksums import check_source
from sb3_extra_buffers.checkpoints.format import CHECKSUM_BLOCK_NBYTES
from sb3_extra_buffers.checkpoints.manifest import BLOCK_NBYTES
from sb3_extra_buffers.errors import FileDamagedError
from sb3_extra_buffers.heaps.state import Log, State

MB = 1 << 20
CONTENT = np.random.default_rng(0).integers(0, 256, 3 * MB, np.uint8)
TABLE = np.random.default_rng(1).integers(0, 256, MB, np.uint8)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda number: None)


@pytest.fixture(params=[True, False], ids=["mapped", "copied"])
def is_mapped(request, monkeypatch):
    if not request.param:
        monkeypatch.setattr(memory_map, "can_map", lambda: False)
        monkeypatch.setattr(manifest, "can_map", lambda: False)
    return request.param


@pytest.fixture
def damaged(tmp_path):
    """A checkpoint with an altered byte, somewhere in its log or its table."""

    def damaged(content, place):
        path = tmp_path / "state"
        log = Log("7", 0, len(CONTENT), lambda low, high: [CONTENT[low:high]])
        checkpoints.save_state(path, State({}, {"table": TABLE}, [log]), {})
        (segment,) = path.glob("segment-*")
        found = bytearray(segment.read_bytes())
        begin = found.index(content[place : place + 64].tobytes())
        found[begin] ^= 1
        segment.write_bytes(found)
        return path

    return damaged


class Loaded:
    """Whoever has loaded a state, goes on with it and saves it again."""

    def __init__(self, path, verify=False):
        state, self.known = checkpoints.load_state(path, verify)
        (piece,) = state.pieces["7"]
        self.content, self.table, self.begin = piece.raw, state.arrays["table"], 0

    def save(self, path):
        log = Log("7", self.begin, len(CONTENT), lambda low, high: [self.content[low:high]])
        self.known = checkpoints.save_state(path, State({}, {"table": self.table}, [log]), {}, self.known)


def test_a_damaged_log_is_not_copied_to_another_folder(damaged, tmp_path, is_mapped):
    owner = Loaded(damaged(CONTENT, 2 * MB + 5))
    for _ in range(2):
        with pytest.raises(FileDamagedError, match=r"segment-000001.*'7@0', bytes 2097152 to 3145727\. Nothing of it"):
            owner.save(tmp_path / "other")
    assert list((tmp_path / "other").iterdir()) == []


def test_a_damaged_log_is_not_moved_to_another_segment(damaged):
    path = damaged(CONTENT, 2 * MB + 5)
    owner = Loaded(path)
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    owner.begin = 2 * MB + 1  # less than half is needed
    with pytest.raises(FileDamagedError, match="'7@0', bytes 2097152 to 3145727"):
        owner.save(path)
    assert {file.name: file.read_bytes() for file in path.iterdir()} == before


def test_damage_beside_what_is_copied_is_no_obstacle(damaged):
    path = damaged(CONTENT, CHECKSUM_BLOCK_NBYTES // 2)
    owner = Loaded(path)
    owner.begin = 2 * MB + 1
    owner.save(path)
    state, _ = checkpoints.load_state(path, verify=True)
    np.testing.assert_array_equal(state.pieces["7"][0].content, CONTENT[2 * MB + 1 :])


@pytest.mark.parametrize("place", [5, 2 * BLOCK_NBYTES + 5])
def test_a_damaged_block_is_not_taken_for_one_that_its_owner_has_changed(place, damaged, is_mapped):
    path = damaged(TABLE, place)
    block = place // BLOCK_NBYTES
    with pytest.raises(FileDamagedError, match=rf"'table#{block}', bytes 0 to {BLOCK_NBYTES - 1}\. Use another copy"):
        Loaded(path)


@pytest.mark.skipif(not memory_map.can_map(), reason="a copy does not change with its file")
@pytest.mark.parametrize("elsewhere", [True, False])
@pytest.mark.parametrize("verify", [True, False])
def test_a_block_that_is_damaged_after_loading_is_not_saved(elsewhere, verify, damaged, tmp_path):
    path = damaged(TABLE, 5)
    (segment,) = path.glob("segment-*")
    with segment.open("r+b") as file:
        place = file.read().index(TABLE[6:70].tobytes()) - 1
        for content in (TABLE[5], TABLE[5] ^ 1):
            file.seek(place)
            file.write(bytes([content]))
            file.flush()
            if content == TABLE[5]:
                owner = Loaded(path, verify)
    with pytest.raises(FileDamagedError, match=r"'table#0', bytes 0 to"):
        owner.save(tmp_path / "other" if elsewhere else path)


def test_blocks_that_their_owner_has_changed_are_saved(damaged, tmp_path):
    path = damaged(TABLE, 5)
    (segment,) = path.glob("segment-*")
    content = bytearray(segment.read_bytes())
    content[content.index(TABLE[6:70].tobytes()) - 1] ^= 1  # what was altered is as it was
    segment.write_bytes(content)
    owner = Loaded(path)
    owner.table[::BLOCK_NBYTES] += 1
    expected = owner.table.copy()
    for place in (path, tmp_path / "other"):
        owner.save(place)
        state, _ = checkpoints.load_state(place, verify=True)
        np.testing.assert_array_equal(state.arrays["table"], expected)


def test_what_comes_from_no_file_has_no_origin(tmp_path):
    for content in (
        CONTENT[5:],
        memory_map.allocate_mappable(MB)[:100],
        np.frombuffer(b"abc", np.uint8),
        np.empty(0, np.uint8),
    ):
        check_source(content)
