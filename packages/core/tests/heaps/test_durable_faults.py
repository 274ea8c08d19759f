"""Damaged bytes, missing bytes, full disks: found, named, and nothing wrong is ever read."""

import os
import shutil
import subprocess
import warnings
from io import FileIO
from pathlib import Path

import pytest

from sb3_extra_buffers.errors import FileError, HeapFullError
from sb3_extra_buffers.heaps import create
from sb3_extra_buffers.heaps.journal_format import BASE_NBYTES, RING_HEADER_NBYTES
from sb3_extra_buffers.heaps.ring_file import FIRST_NBYTES
from sb3_extra_buffers.testing.heap_subject import held, payload, put

CELLS, CAPACITY = 12, 600


def make(path, reopen=False):
    return create("mmap", CELLS, capacity=CAPACITY, path=str(path), reopen=reopen)


def row(number):
    cells = [number * 5 % CELLS, (number * 5 + 7) % CELLS]
    return cells, [payload(cell, number, 20 + number % 3) for cell in cells]


@pytest.fixture
def made(tmp_path):
    """The two files of a heap that has gone around, and what it held after each of its rows."""
    heap, states = make(tmp_path / "heap"), [{}]
    for number in range(20):
        put(heap, *row(number))
        states.append(held(heap))
    heap.close()
    return tmp_path / "heap", (tmp_path / "heap.journal").read_bytes(), states


def reopened(path):
    """What is found in a damaged file, and whether that was said; or the error."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            heap = make(path, reopen=True)
        except FileError:
            return None, True
        found, is_whole = held(heap), heap.recovery.is_whole
        assert heap.live == sum(map(len, found.values()))
        heap.close()
    assert is_whole == (not said)
    return found, bool(said)


def test_a_journal_cut_anywhere_gives_an_earlier_state_of_the_heap_or_an_error(made):
    path, journal, states = made
    ring = path.read_bytes()
    for size in range(0, len(journal), 13):
        path.write_bytes(ring)
        path.with_name("heap.journal").write_bytes(journal[:size])
        found, is_said = reopened(path)
        if size < BASE_NBYTES:
            assert found is None
            continue
        # Payloads that later rows overwrote are found to be damaged.
        assert found is not None
        assert any(found.items() <= state.items() for state in states)
        assert found == states[-1] or is_said or any(found == state for state in states)


def test_a_journal_cut_between_two_records_is_an_earlier_state_without_a_warning(tmp_path):
    path, journal = tmp_path / "heap", tmp_path / "heap.journal"
    heap, ends, states = make(path), [], []
    for number in range(3):
        put(heap, [number], [payload(number, 0, 20)])
        ends.append(journal.stat().st_size)
        states.append(held(heap))
    heap.close()
    os.truncate(journal, ends[1])
    assert reopened(path) == (states[1], False)  # as docs/heaps.md says: nobody can know


@pytest.mark.parametrize("bit", [0, 7])
def test_a_flipped_bit_of_the_journal_is_found_wherever_it_is(made, bit):
    path, journal, states = made
    ring = path.read_bytes()
    for place in range(0, len(journal), 19):
        damaged = bytearray(journal)
        damaged[place] ^= 1 << bit
        path.write_bytes(ring)
        path.with_name("heap.journal").write_bytes(damaged)
        found, is_said = reopened(path)
        assert is_said, f"byte {place}"
        assert (found is None) == (place < BASE_NBYTES)
        assert found is None or any(found.items() <= state.items() for state in states)


def test_a_flipped_bit_of_a_payload_costs_its_row_and_no_other(made):
    path, journal, states = made
    ring, whole = path.read_bytes(), states[-1]
    for place in range(0, FIRST_NBYTES + CAPACITY, 7):
        if RING_HEADER_NBYTES <= place < FIRST_NBYTES:
            continue  # nothing is there
        damaged = bytearray(ring)
        damaged[place] ^= 16
        path.write_bytes(damaged)
        path.with_name("heap.journal").write_bytes(journal)
        found, is_said = reopened(path)
        if found is None:
            assert place < RING_HEADER_NBYTES
            continue
        assert found.items() <= whole.items()
        lost = set(whole) - set(found)
        assert is_said == bool(lost)
        assert len(lost) <= 2


def test_a_file_cut_short_or_made_longer_is_refused(made):
    path, _, _ = made
    ring = path.read_bytes()
    for size in (1, RING_HEADER_NBYTES - 1, FIRST_NBYTES, len(ring) - 1, len(ring) + 1):
        path.write_bytes((ring + b"x")[:size])
        with pytest.raises(FileError):
            make(path, reopen=True)


def test_a_newer_version_and_a_missing_journal_are_named(made):
    path, journal, _ = made
    path.with_name("heap.journal").write_bytes(journal[:12] + b"\x02" + journal[13:])
    with pytest.raises(FileError, match="format version 2, this version reads up to 1"):
        make(path, reopen=True)
    path.with_name("heap.journal").unlink()
    with pytest.raises(FileError, match=r"its journal .* is missing or empty"):
        make(path, reopen=True)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_journal_that_cannot_be_written_refuses_the_row_and_keeps_what_is_intact(tmp_path):
    heap = make(tmp_path / "heap")
    for number in range(40):
        if number % 3 == 2:
            before, sound = held(heap), heap._journal._file
            with FileIO("/dev/full", "r+") as full:
                heap._journal._file = full
                with pytest.raises(HeapFullError, match="No space left on device"):
                    put(heap, *row(number))
                heap._journal._file = sound
            assert held(heap).items() <= before.items()
        else:
            put(heap, *row(number))
            assert dict(zip(*row(number))).items() <= held(heap).items()
    found, evicted = held(heap), heap.evicted
    heap.close()
    again = make(tmp_path / "heap", reopen=True)
    assert (held(again), again.evicted) == (found, evicted)
    assert again.recovery.is_whole


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_disk_that_fills_up_refuses_rows_and_loses_none(small_disk):
    with pytest.raises(HeapFullError, match="bytes are free there"):
        create("mmap", CELLS, capacity=1 << 20, path=str(small_disk / "large"))
    assert list(small_disk.iterdir()) == []
    heap, refused = make(small_disk / "heap"), 0
    with (small_disk / "other").open("wb", buffering=0) as other:
        os.posix_fallocate(other.fileno(), 0, shutil.disk_usage(small_disk).free - 4096)
    for number in range(400):
        before = held(heap)
        try:
            put(heap, *row(number))
        except HeapFullError:
            refused += 1
            assert held(heap).items() <= before.items()
    assert 0 < refused < 400
    (small_disk / "other").unlink()
    put(heap, [3], [b"there is room again"])
    found, evicted = held(heap), heap.evicted
    assert found[3] == b"there is room again"
    heap.close()
    again = make(small_disk / "heap", reopen=True)
    assert (held(again), again.evicted) == (found, evicted)
    assert again.recovery.is_whole
    again.close()
