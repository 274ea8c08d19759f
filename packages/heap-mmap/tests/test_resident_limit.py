"""However large the file, a process holds no more of it than it was allowed."""

from pathlib import Path

import numpy as np
import pytest

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.heaps import create, within_reach
from sb3_extra_buffers.testing.heap_subject import held, payload, put
from sb3_extra_buffers.testing.processes import in_fresh_process
from sb3_extra_buffers_heap_mmap.pages import WINDOW_NBYTES, ResidentLimit

CELLS, NBYTES, BATCH, MIB = 4000, 16_000, 32, 1 << 20


def mapped_nbytes() -> int:
    """How much of files this process has in memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(("RssFile:", "RssShmem:")))


def most_mapped(resident, by_view) -> int:
    """Sample from a heap of 64 MB and return how much of it was in memory at the most."""
    heap = create("mmap", CELLS, capacity=CELLS * NBYTES, resident=resident)
    random = np.random.default_rng(0)
    block = random.integers(0, 256, NBYTES, np.uint8)
    for cell in range(CELLS):
        room = heap.reserve(np.array([cell]), NBYTES)
        room[:] = block
        room[:2] = [cell % 256, cell // 256]
        heap.commit(np.array([NBYTES]))
    before, most = mapped_nbytes(), 0
    for _ in range(200):
        cells = random.integers(0, CELLS, BATCH)
        starts, lengths = heap.locate(cells)
        if not by_view:
            within_reach(heap, starts, lengths)
        for cell, start in zip(cells.tolist(), starts.tolist()):
            data = np.frombuffer(heap.view(start, NBYTES), np.uint8)
            assert int(data[0]) + 256 * int(data[1]) == cell
            assert (data[2:] == block[2:]).all()
        most = max(most, mapped_nbytes() - before)
    return most


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads how much is resident from /proc")
@pytest.mark.parametrize("by_view", [False, True])
def test_resident_memory_stays_within_the_limit_and_one_batch(by_view):
    batch = BATCH * 2 * WINDOW_NBYTES
    assert in_fresh_process(most_mapped, 8 * MIB, by_view) <= 8 * MIB + batch + MIB
    assert in_fresh_process(most_mapped, 0, by_view) > 32 * MIB  # or the test would show nothing


class _Counted:
    def __init__(self):
        self.times = 0

    def let_go(self):
        self.times += 1


def test_what_is_read_again_and_again_is_counted_once():
    advice = _Counted()
    limit = ResidentLimit(advice, 100 * WINDOW_NBYTES, 10 * WINDOW_NBYTES)
    window = np.arange(10) * WINDOW_NBYTES
    for _ in range(50):
        limit.touch(window, window + 100)
        limit.touch_one(int(window[3]), int(window[3]) + 5)
    assert advice.times == 0
    limit.touch_one(10 * WINDOW_NBYTES - 1, 10 * WINDOW_NBYTES + 1)
    assert advice.times == 1


def test_a_file_within_the_limit_is_never_let_go():
    assert not create("mmap", 10, capacity=1000, resident=1 << 17)._resident_limit.is_bounded
    assert not create("mmap", 10, capacity=1 << 20, resident=0)._resident_limit.is_bounded
    assert create("mmap", 10, capacity=1 << 20, resident=1)._resident_limit.is_bounded


@pytest.mark.parametrize("resident", [-1, True, 1.5, "1GB", None])
def test_a_limit_that_is_none_is_refused(resident):
    with pytest.raises(ParameterError, match="resident"):
        create("mmap", 10, capacity=1000, resident=resident)


def test_a_tight_limit_reads_the_same_bytes():
    heap = create("mmap", 200, capacity=200 * 9000, resident=1)
    for cell in range(200):
        put(heap, [cell], [payload(cell, 0, 9000)])
    assert held(heap) == {cell: payload(cell, 0, 9000) for cell in range(200)}
