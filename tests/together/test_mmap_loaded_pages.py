"""What an mmap heap was loaded from is read as its own file is: all of a batch at once, and not more than allowed."""

import ctypes
import mmap
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from sb3_extra_buffers.checkpoints import array_file, load_state, save_state
from sb3_extra_buffers.heaps import create, within_reach
from sb3_extra_buffers.testing.heap_subject import held, payload, put
from sb3_extra_buffers.testing.processes import in_fresh_process
from sb3_extra_buffers_heap_mmap.pages import WINDOW_NBYTES

NBYTES, MIB = 5000, 1 << 20

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks Linux which pages are in memory")


def saved_heap(folder, cells, nbytes, **parameters):
    """A folder with the state of a heap, of which nothing is in memory."""
    heap = create("mmap", cells, capacity=cells * nbytes, **parameters)
    for cell in range(cells):
        put(heap, [cell], [payload(cell, 0, nbytes)])
    save_state(folder, heap.state(), {})
    for file in Path(folder).iterdir():
        number = os.open(file, os.O_RDONLY)
        os.posix_fadvise(number, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(number)


def loaded_heap(folder, cells, nbytes, **parameters):
    heap = create("mmap", cells, capacity=cells * nbytes, **parameters)
    heap.restore(load_state(folder)[0])
    return heap


def in_memory(content) -> np.ndarray:
    """For each page of a piece, whether the system has it in memory."""
    begin = content.ctypes.data // mmap.PAGESIZE * mmap.PAGESIZE
    pages = -(-(content.ctypes.data + len(content) - begin) // mmap.PAGESIZE)
    found = (ctypes.c_ubyte * pages)()
    assert ctypes.CDLL(None).mincore(ctypes.c_void_p(begin), ctypes.c_size_t(pages * mmap.PAGESIZE), found) == 0
    return np.frombuffer(found, np.uint8) & 1 == 1


def test_all_pages_of_a_batch_are_asked_for_and_few_others(tmp_path):
    saved_heap(tmp_path / "saved", 400, NBYTES)
    heap = loaded_heap(tmp_path / "saved", 400, NBYTES)
    (content,) = heap._saved.contents
    if in_memory(content).mean() > 0.5:
        pytest.skip("this file system keeps all files in memory")
    cells = np.array([7, 8, 9, 300, 300, 150])
    starts, lengths = heap.locate(cells)
    source, places = within_reach(heap, starts, lengths)
    inside = content.ctypes.data % mmap.PAGESIZE
    wanted = {page for at in (starts + inside).tolist() for page in range(at // 4096, (at + NBYTES - 1) // 4096 + 1)}
    hang_guard = time.monotonic() + 600
    while not in_memory(content)[sorted(wanted)].all():
        assert time.monotonic() < hang_guard
        time.sleep(0.001)
    # Opening the file has read its beginning and its end, with what the system reads ahead by itself.
    assert in_memory(content).sum() <= len(wanted) + 100
    for cell, place in zip(cells.tolist(), places.tolist()):
        assert bytes(source.view(place, NBYTES)) == payload(cell, 0, NBYTES)


def test_systems_that_take_no_advice_are_left_alone(tmp_path, monkeypatch):
    saved_heap(tmp_path / "saved", 50, NBYTES)
    monkeypatch.delattr(os, "posix_fadvise")
    for name in ("MADV_RANDOM", "MADV_WILLNEED", "MADV_DONTNEED"):
        monkeypatch.delattr(mmap, name)
    heap = loaded_heap(tmp_path / "saved", 50, NBYTES, resident=1)
    within_reach(heap, *heap.locate(np.arange(50)))
    assert held(heap) == {cell: payload(cell, 0, NBYTES) for cell in range(50)}
    save_state(tmp_path / "again", heap.state(), {})


def test_a_heap_that_is_written_to_after_loading_reads_both_files(tmp_path):
    saved_heap(tmp_path / "saved", 60, NBYTES)
    heap = loaded_heap(tmp_path / "saved", 60, NBYTES, resident=1)
    expected = {cell: payload(cell, 0, NBYTES) for cell in range(60)}
    for cell in range(70):  # in the end, nothing that was loaded is left
        put(heap, [cell % 60], [payload(cell % 60, 1, NBYTES)])
        expected[cell % 60] = payload(cell % 60, 1, NBYTES)
        within_reach(heap, *heap.locate(np.arange(60)))
        assert held(heap) == expected
    assert heap._pages is None


def mapped_nbytes() -> int:
    """How much of files this process has in memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(("RssFile:", "RssShmem:")))


def most_mapped(resident, by_view) -> tuple[int, int]:
    """Load a heap of 64 MB, sample from it, save it; return how much was in memory at the most, at each."""
    cells, nbytes, most = 4000, 16_000, 0
    with tempfile.TemporaryDirectory() as folder:
        saved_heap(Path(folder, "saved"), cells, nbytes, resident=8 * MIB)
        heap = loaded_heap(Path(folder, "saved"), cells, nbytes, resident=resident)
        random, before = np.random.default_rng(0), mapped_nbytes()
        for _ in range(200):
            starts, lengths = heap.locate(random.integers(0, cells, 32))
            if not by_view:
                within_reach(heap, starts, lengths)
            for start in starts.tolist():
                assert len(bytes(heap.view(start, nbytes))) == nbytes
            most = max(most, mapped_nbytes() - before)
        read, write_all = most, array_file.write_all

        def written(file, content):
            nonlocal most
            most = max(most, mapped_nbytes() - before)
            write_all(file, content)

        array_file.write_all, most = written, 0
        save_state(Path(folder, "again"), heap.state(), {})
        array_file.write_all = write_all
    return read, most


@pytest.mark.parametrize("by_view", [False, True])
def test_resident_memory_stays_within_the_limit_and_one_batch(by_view):
    batch = 32 * 2 * WINDOW_NBYTES
    read, written = in_fresh_process(most_mapped, 8 * MIB, by_view)
    assert read <= 8 * MIB + batch + MIB
    assert written <= 8 * MIB + batch + 3 * MIB
    assert in_fresh_process(most_mapped, 0, by_view)[0] > 32 * MIB  # or the test would show nothing
