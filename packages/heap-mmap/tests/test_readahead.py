"""A batch is read from the disk at once, before anybody asks for its first byte."""

import ctypes
import mmap
import os
import sys
import time

import numpy as np
import pytest

from sb3_extra_buffers.heaps import create, within_reach
from sb3_extra_buffers.testing.heap_subject import payload, put

NBYTES = 5000

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks Linux which pages of a file are in memory")


def in_memory(heap) -> np.ndarray:
    """For each page of the file, whether the system has it in memory."""
    pages = -(-heap.capacity // mmap.PAGESIZE)
    found = (ctypes.c_ubyte * pages)()
    begin = ctypes.c_void_p(heap._block.address)
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mincore(begin, ctypes.c_size_t(pages * mmap.PAGESIZE), found) == 0, os.strerror(ctypes.get_errno())
    return np.frombuffer(found, np.uint8) & 1 == 1


def evict(heap) -> None:
    os.fsync(heap._file.fileno())
    heap._advice.let_go()
    os.posix_fadvise(heap._file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def wait_for(heap, pages) -> np.ndarray:
    """Wait until these pages are in memory; they come when the disk has them. Returns which are."""
    hang_guard = time.monotonic() + 600
    while not in_memory(heap)[pages].all():
        assert time.monotonic() < hang_guard
        time.sleep(0.001)
    return in_memory(heap)


def test_all_pages_of_a_batch_are_asked_for_and_no_others(tmp_path):
    heap = create("mmap", 400, capacity=400 * NBYTES, folder=str(tmp_path))
    for cell in range(400):
        put(heap, [cell], [payload(cell, 0, NBYTES)])
    evict(heap)
    if in_memory(heap).mean() > 0.5:
        pytest.skip("this file system keeps all files in memory")
    cells = np.array([7, 8, 9, 300, 300, 150])
    starts, lengths = heap.locate(cells)
    source, places = within_reach(heap, starts, lengths)
    wanted = [page for start in starts.tolist() for page in range(start // 4096, (start + NBYTES - 1) // 4096 + 1)]
    asked = wait_for(heap, wanted)
    assert asked.sum() <= len(set(wanted)) + 4  # the file system may keep a page of its own beside them
    for cell, place in zip(cells.tolist(), places.tolist()):
        assert bytes(source.view(place, NBYTES)) == payload(cell, 0, NBYTES)


def test_systems_that_take_no_advice_are_left_alone(monkeypatch):
    monkeypatch.delattr(os, "posix_fadvise")
    for name in ("MADV_RANDOM", "MADV_WILLNEED", "MADV_DONTNEED"):
        monkeypatch.delattr(mmap, name)
    heap = create("mmap", 400, capacity=400 * NBYTES, resident=1)
    for cell in range(400):
        put(heap, [cell], [payload(cell, 0, NBYTES)])
    starts, lengths = heap.locate(np.arange(400))
    source, places = within_reach(heap, starts, lengths)
    for cell, place in enumerate(places.tolist()):
        assert bytes(source.view(place, NBYTES)) == payload(cell, 0, NBYTES)


def test_without_posix_fadvise_the_mapping_takes_the_advice(tmp_path, monkeypatch):
    heap = create("mmap", 100, capacity=100 * NBYTES, folder=str(tmp_path))
    for cell in range(100):
        put(heap, [cell], [payload(cell, 0, NBYTES)])
    evict(heap)
    if in_memory(heap).mean() > 0.5:
        pytest.skip("this file system keeps all files in memory")
    monkeypatch.delattr(os, "posix_fadvise")
    starts, lengths = heap.locate(np.array([99, 4]))
    heap.bring(starts, lengths)
    wait_for(heap, [int(start) // 4096 for start in starts])


def test_no_payloads_are_nothing_to_bring():
    heap = create("mmap", 3, capacity=100)
    none = np.empty(0, np.int64)
    source, places = heap.bring(none, none)
    assert source is heap
    assert len(places) == 0
