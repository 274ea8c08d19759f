"""The ring in a file: nothing stays behind, and a full disk is an error, not a signal."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from sb3_extra_buffers.errors import HeapFullError, ParameterError
from sb3_extra_buffers.heaps import create
from sb3_extra_buffers.testing.heap_subject import held, payload, put


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
