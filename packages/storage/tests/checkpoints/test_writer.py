"""Saving again writes what has changed, drops what is not needed, and is never half done."""

import fcntl
import os
from pathlib import Path

import numpy as np
import pytest

from sb3_extra_buffers import checkpoints
from sb3_extra_buffers.checkpoints import manifest, writer
from sb3_extra_buffers.checkpoints.manifest import BLOCK_NBYTES
from sb3_extra_buffers.errors import FileContentError, FileError
from sb3_extra_buffers.heaps.state import Log, State

MB = 1 << 20


class Owner:
    """Something with an array, and a log of which the beginning is forgotten."""

    def __init__(self):
        self.table = np.zeros(8 * MB, np.uint8)
        self.log = np.random.default_rng(0).integers(0, 256, 64 * MB, np.uint8)
        self.begin = self.end = 0
        self.known = None

    def state(self):
        log = Log("7", self.begin, self.end, lambda low, high: [self.log[low:high]])
        inner = State({"begin": self.begin, "end": self.end}, {"table": self.table, "few": np.arange(3)}, [log])
        return State().put("inner", inner)

    def save(self, path):
        self.known = checkpoints.save_state(path, self.state(), {"who": "we"}, self.known)

    def check(self, path):
        state, manifest = checkpoints.load_state(path, verify=True)
        part = state.part("inner")
        assert part.facts == {"begin": self.begin, "end": self.end}
        assert (part.arrays["table"] == self.table).all()
        assert part.arrays["few"].tolist() == [0, 1, 2]
        pieces = part.pieces.get("7", [])
        position = pieces[0].begin if pieces else self.begin
        assert position <= self.begin
        for piece in pieces:
            assert piece.begin == position
            position += len(piece.content)
            low = max(piece.begin, self.begin)  # of what is older, anything may be there
            assert (piece.content[low - piece.begin :] == self.log[low:position]).all()
        assert position == self.end
        return manifest


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda number: None)


def sizes(path):
    return {file.name: file.stat().st_size for file in path.iterdir()}


def test_only_what_has_changed_is_written_again(tmp_path):
    owner, path = Owner(), tmp_path / "state"
    owner.end = 10 * MB
    owner.save(path)
    owner.check(path)
    before = sizes(path)
    owner.table[5 * MB] = 1
    owner.end += 1000
    owner.save(path)
    owner.check(path)
    new = {name: size for name, size in sizes(path).items() if name not in before}
    assert len(new) == 1
    assert BLOCK_NBYTES < sum(new.values()) < BLOCK_NBYTES + 10_000
    assert {name for name in before if "segment" in name} <= set(sizes(path))


def test_nothing_changed_writes_no_segment(tmp_path):
    owner, path = Owner(), tmp_path / "state"
    owner.save(path)
    before = set(sizes(path))
    owner.save(path)
    assert set(sizes(path)) == before
    owner.check(path)


def test_what_is_forgotten_is_dropped_and_the_folder_stays_small(tmp_path, monkeypatch):
    monkeypatch.setattr(manifest, "MAX_SEGMENT_NBYTES", 4 * MB)
    owner, path = Owner(), tmp_path / "state"
    for step in range(60):
        owner.end = step * MB
        owner.begin = max(0, owner.end - 8 * MB + 12_345)
        owner.table[step * 1000 : step * 1000 + 700_000] = step
        owner.save(path)
        owner.check(path)
        live = owner.table.nbytes + owner.end - owner.begin
        assert sum(sizes(path).values()) < 2 * live + 6 * MB


def test_many_small_saves_do_not_leave_many_files(tmp_path):
    owner, path = Owner(), tmp_path / "state"
    for step in range(150):
        owner.end = step * 1000
        owner.save(path)
        assert len(sizes(path)) <= 67
    assert len(owner.check(path).segments) <= 65


def test_segments_that_are_large_already_are_not_copied_at_every_save(tmp_path, monkeypatch):
    for module in (manifest, writer):
        monkeypatch.setattr(module, "MAX_SEGMENT_NBYTES", MB // 4)
    owner, path = Owner(), tmp_path / "state"
    owner.save(path)
    for step in range(1, 90):
        before = set(sizes(path)) - {"manifest.safetensors"}
        owner.end = step * MB // 4
        owner.save(path)
        new = {name: size for name, size in sizes(path).items() if name not in before and "segment" in name}
        assert sum(new.values()) < MB // 2
        assert before <= set(sizes(path))
    owner.check(path)


def test_what_was_loaded_is_saved_again_by_what_has_changed(tmp_path):
    owner, path = Owner(), tmp_path / "state"
    owner.end = 10 * MB
    owner.save(path)
    owner.known = owner.check(path)
    before = set(sizes(path))
    owner.end += 500
    owner.save(path)
    new = set(sizes(path)) - before
    assert sum(sizes(path)[name] for name in new) < 5000
    owner.check(path)


def test_whoever_knows_an_older_state_writes_everything(tmp_path):
    owner, other, path = Owner(), Owner(), tmp_path / "state"
    owner.end = other.end = 3 * MB
    owner.save(path)
    other.table[:] = 9
    other.log = other.log[::-1].copy()
    other.save(path)
    other.check(path)
    owner.end += 10
    owner.save(path)
    owner.check(path)


def test_a_log_that_began_anew_under_its_old_positions_must_have_another_name(tmp_path):
    owner, path = Owner(), tmp_path / "state"
    owner.end = MB
    owner.save(path)
    state = owner.state()
    state.logs = [Log("inner/8", 0, 10, lambda low, high: [np.full(high - low, 5, np.uint8)])]
    checkpoints.save_state(path, state, {}, owner.known)
    found, _ = checkpoints.load_state(path)
    assert [piece.content.tolist() for piece in found.pieces["inner/8"]] == [[5] * 10]
    assert "inner/7" not in found.pieces


def test_leftovers_of_a_process_that_was_killed_are_removed_by_the_next_save(tmp_path):
    owner, path = Owner(), tmp_path / "state"
    owner.save(path)
    (path / "segment-000009.safetensors").write_bytes(b"half")
    (path / ".manifest.safetensors.0123.unfinished").write_bytes(b"half")
    owner.check(path)
    owner.end = 10
    owner.save(path)
    assert {"segment-000009.safetensors", ".manifest.safetensors.0123.unfinished"}.isdisjoint(sizes(path))
    owner.check(path)


def test_two_processes_do_not_save_at_once(tmp_path):
    owner, path = Owner(), tmp_path / "state"
    owner.save(path)
    number = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(number, fcntl.LOCK_EX)
        with pytest.raises(FileContentError, match="another process is saving"):
            owner.save(path)
    finally:
        os.close(number)
    owner.save(path)


def test_a_reader_that_is_overtaken_looks_again(tmp_path, monkeypatch):
    owner, path, opened = Owner(), tmp_path / "state", []
    owner.end = 3 * MB
    owner.save(path)

    class Late(manifest.Segments):
        def __init__(self, folder, known):
            if not opened:
                opened.append(folder / f"segment-{min(known):06d}.safetensors")
                assert opened[0].exists()
                owner.known = None
                owner.save(path)
            super().__init__(folder, known)

    monkeypatch.setattr(manifest, "Segments", Late)
    owner.check(path)
    assert opened
    assert not Path(opened[0]).exists()


def test_every_flipped_bit_and_truncation_of_every_file_is_found_and_named(tmp_path):
    path = tmp_path / "state"
    log = Log("1", 0, 900, lambda low, high: [np.arange(low, high).astype(np.uint8)])
    checkpoints.save_state(path, State({"a": 1}, {"few": np.arange(5), "many": np.arange(700)}, [log]), {"b": 2})
    assert len(sizes(path)) == 2
    for file in path.iterdir():
        content = file.read_bytes()
        for place in range(0, len(content), 3):
            damaged = bytearray(content)
            damaged[place] ^= 1 << (place % 8)
            file.write_bytes(damaged)
            with pytest.raises(FileError) as caught:
                checkpoints.load_state(path, verify=True)
            assert file.name in str(caught.value)
        for length in range(0, len(content), 97):
            file.write_bytes(content[:length])
            with pytest.raises(FileError) as caught:
                checkpoints.load_state(path)
            assert file.name in str(caught.value)
        file.write_bytes(content)
    checkpoints.load_state(path, verify=True)
