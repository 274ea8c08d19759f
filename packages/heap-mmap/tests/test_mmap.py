"""The ring in a file: nothing stays behind, and a full disk is an error, not a signal."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from sb3_extra_buffers.errors import HeapFullError, HeapStateError, ParameterError
from sb3_extra_buffers.heaps import create
from sb3_extra_buffers.testing.heap_subject import held, payload, put
from sb3_extra_buffers.testing.processes import in_forked_child


def test_the_file_lies_in_the_folder_and_has_no_name(tmp_path):
    heap = create("mmap", 10, capacity=1 << 20, folder=str(tmp_path))
    put(heap, [3], [b"three"])
    assert list(tmp_path.iterdir()) == []
    assert os.fstat(heap._file.fileno()).st_size == 1 << 20
    twin = pickle.loads(pickle.dumps(heap))
    assert os.fstat(twin._file.fileno()).st_dev == tmp_path.stat().st_dev
    assert held(twin) == {3: b"three"}


def test_payloads_are_not_counted_as_memory():
    heap = create("mmap", 10, capacity=1 << 26)
    assert heap.capacity == 1 << 26
    assert heap.nbytes < 1 << 16


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"capacity": -5}, "capacity=-5"),
        ({"capacity": 5, "folder": 5}, "folder=5 is not allowed; it must be a folder that exists"),
        ({"capacity": 5, "path": "x"}, "path='x' is not allowed; known parameters: capacity, folder, resident"),
    ],
)
def test_parameters_that_are_unknown_or_out_of_range_are_refused(parameters, message):
    with pytest.raises(ParameterError, match=message):
        create("mmap", 5, **parameters)


def test_a_folder_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="it must be a folder that exists"):
        create("mmap", 10, capacity=1 << 20, folder=str(tmp_path / "nowhere"))


def test_a_capacity_that_the_disk_does_not_have_is_refused_at_once(tmp_path):
    with pytest.raises(HeapFullError, match=r"Writing in .* failed .*; \d+ bytes are free there"):
        create("mmap", 10, capacity=1 << 55, folder=str(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_write_that_fails_keeps_every_payload_that_is_intact():
    heap = create("mmap", 10, capacity=1000)
    for cell in range(9):
        put(heap, [cell], [payload(cell, 0, 100)])
    before, sound = held(heap), heap._file
    with Path("/dev/full").open("wb", buffering=0) as full:
        heap._file = full
        with pytest.raises(HeapFullError, match="No space left on device"):
            put(heap, [8, 9], [b"x" * 50, b"y" * 50])
        heap._file = sound
    assert held(heap) == before
    put(heap, [8, 9], [b"x" * 50, b"y" * 50])
    assert held(heap) == {**before, 8: b"x" * 50, 9: b"y" * 50}


def test_the_temporary_folder_is_found_anew_when_a_heap_is_unpickled(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    packed = pickle.dumps(create("mmap", 10, capacity=1000))
    monkeypatch.setattr("tempfile.tempdir", None)
    tmp_path.rmdir()
    assert held(pickle.loads(packed)) == {}


def test_a_forked_child_may_read_but_not_write_into_the_file_of_its_parent():
    heap = create("mmap", 3, capacity=1000)
    put(heap, [0], [b"parent"])

    def in_child():
        assert held(heap) == {0: b"parent"}
        with pytest.raises(HeapStateError, match="this process was forked"):
            put(heap, [0], [b"child"])

    in_forked_child(in_child)
    assert held(heap) == {0: b"parent"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_failed_write_never_leaves_a_cell_that_cannot_be_read():
    for size in (60, 130, 250):
        heap = create("mmap", 12, capacity=1000)
        for row in range(40):
            cells = [row * 5 % 12, (row * 5 + 7) % 12]
            if row % 3 == 2:
                sound = heap._file
                with Path("/dev/full").open("wb", buffering=0) as full:
                    heap._file = full
                    with pytest.raises(HeapFullError):
                        put(heap, cells, [b"x" * size, b"y" * size])
                    heap._file = sound
            else:
                put(heap, cells, [payload(cell, row, size) for cell in cells])
            assert heap.live == sum(map(len, held(heap).values())) <= 1000


def test_a_buffer_larger_than_the_budget_of_memory_reads_back():
    heap = create("mmap", 4000, capacity=64 << 20)
    block = np.random.default_rng(0).integers(0, 256, 16_000, np.uint8)
    for cell in range(4000):
        room = heap.reserve(np.array([cell]), 16_000)
        room[:] = block
        room[:2] = [cell % 256, cell // 256]
        heap.commit(np.array([16_000]))
    assert heap.evicted.cells == 0
    for cell in (0, 1, 1999, 3999):
        data = np.frombuffer(heap.view(*(part.item() for part in heap.locate(np.array([cell])))), np.uint8)
        assert int(data[0]) + 256 * int(data[1]) == cell
        assert (data[2:] == block[2:]).all()


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a folder in which nobody can make a file")
def test_a_folder_in_which_no_file_can_be_made_is_refused():
    with pytest.raises(HeapStateError, match="mmap: cannot create a file in /proc"):
        create("mmap", 3, capacity=100, folder="/proc")
