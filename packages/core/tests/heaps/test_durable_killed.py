"""A process that is killed at any moment loses nothing that it had committed, and leaves nothing half-written."""

import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from sb3_extra_buffers.heaps import create
from sb3_extra_buffers.testing.heap_subject import held, payload, put

CAPACITY, KILLS = 50_000, 30
#: Sixty are used. So many that the order of writing never has to be tidied up, which evicts a little less.
CELLS = 30_000

WRITER = """
import os, sys
from sb3_extra_buffers.heaps import create, journal
import test_durable_killed as test

journal._MIN_NBYTES = 4096  # written anew every few dozen rows
path, first = sys.argv[1], int(sys.argv[2])
heap = create("mmap", test.CELLS, capacity=test.CAPACITY, path=path, reopen=first > 0 or os.path.exists(path))
for row in range(first, 1 << 30):
    test.put(heap, *test.row(row))
    os.write(1, row.to_bytes(8, "little"))
"""

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="processes are not killed by signals here")


def row(number):
    """What is written, row by row: a stream that replaces, evicts and wraps around."""
    random = np.random.default_rng([5, number])
    cells = random.permutation(60)[: random.integers(1, 5)].tolist()
    return cells, [payload(cell, number, int(random.integers(1, 4000))) for cell in cells]


def run_and_kill(path, first, rows):
    """Let a process write until it has said that ``rows`` are committed, kill it, and return the number of the last."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])}
    command = [sys.executable, "-c", WRITER, str(path), str(first)]
    said, last = b"", first - 1
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        while len(said) < 8 * rows:
            piece = os.read(process.stdout.fileno(), 8 * rows - len(said))
            assert piece, "the writer ended by itself"
            said += piece
        process.send_signal(signal.SIGKILL)
        said += process.stdout.read()
    if said:
        last = int.from_bytes(said[-8:], "little")
    assert len(said) == 8 * (last - first + 1)
    return last


def test_every_committed_row_is_there_after_a_kill(tmp_path):
    random, path = np.random.default_rng(11), tmp_path / "heap"
    behind, ahead = (create("ring", CELLS, capacity=CAPACITY) for _ in range(2))
    written = 0  # behind has all rows before «written», ahead one more
    put(ahead, *row(0))
    for kill in range(KILLS):
        last = run_and_kill(path, written, int(random.integers(1, 150)))
        while written <= last:
            put(behind, *row(written))
            written += 1
            put(ahead, *row(written))
        with warnings.catch_warnings():
            # A record may be cut short: it is of the row that was being written.
            warnings.filterwarnings("ignore", message=".*no whole record, 0 cells")
            heap = create("mmap", CELLS, capacity=CAPACITY, path=str(path), reopen=True)
        found, old, new = held(heap), held(behind), held(ahead)
        assert heap.recovery.damaged == ()
        assert heap.live == sum(map(len, found.values()))
        if found == new:  # committed, and killed before it could say so
            assert heap.evicted == ahead.evicted
            put(behind, *row(written))
            written += 1
            put(ahead, *row(written))
        else:
            # The row that was being written may have overtaken some of the oldest already; they are gone, as it said.
            assert found.items() <= old.items(), f"kill {kill}: other bytes than were committed"
            assert found.items() >= old.items() & new.items(), f"kill {kill}: a committed row is lost"
            assert heap.evicted in (behind.evicted, ahead.evicted)
        heap.close()
    assert behind.evicted.rows > 0
    assert behind._tail > 3 * CAPACITY  # it went around


def test_a_process_killed_while_it_makes_the_file_leaves_one_that_can_be_reopened(tmp_path):
    from sb3_extra_buffers.heaps.ring_file import FIRST_NBYTES

    for size in (0, FIRST_NBYTES + CAPACITY):  # before and after the room was claimed
        path = tmp_path / f"heap{size}"
        path.write_bytes(bytes(size))
        heap = create("mmap", CELLS, capacity=CAPACITY, path=str(path), reopen=True)
        put(heap, [3], [b"three"])
        heap.close()
        assert held(create("mmap", CELLS, capacity=CAPACITY, path=str(path), reopen=True)) == {3: b"three"}
