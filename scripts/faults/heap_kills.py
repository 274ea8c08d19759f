"""Processes that are killed while they write to a heap that outlives them."""

from __future__ import annotations

import random
import warnings
from pathlib import Path

import numpy as np

from sb3_extra_buffers.heaps import Heap, create, journal
from sb3_extra_buffers.testing.heap_subject import held, payload, put
from scripts.faults.children import begins, in_child, tell
from scripts.faults.tally import Tally

#: Sixty cells are used. So many that the order of writing never has to be tidied up, which evicts a little less.
_CELLS, _CAPACITY = 30_000, 50_000
#: So that the journal is written anew every few dozen rows.
_JOURNAL_NBYTES = 4096


def row(number: int) -> tuple[list[int], list[bytes]]:
    """What is written, row by row: a stream that replaces, evicts and wraps around."""
    rng = np.random.default_rng([5, number])
    cells = rng.permutation(60)[: rng.integers(1, 5)].tolist()
    return cells, [payload(cell, number, int(rng.integers(1, 4000))) for cell in cells]


def heap_kills(folder: Path, runs: int, rng: random.Random) -> Tally:
    """Kill a process that writes rows, at a random moment; the next one reopens the file and goes on."""
    tally, path = Tally("SIGKILL while an mmap heap is written to"), folder / "heap"
    # The same rows in memory: all that were told, and one more, which may have been committed and not yet told.
    behind, ahead = (create("ring", _CELLS, capacity=_CAPACITY) for _ in range(2))
    written = 0
    put(ahead, *row(0))

    def write(telling: int) -> None:
        journal._MIN_NBYTES = _JOURNAL_NBYTES
        heap = _reopened(path) if path.exists() else create("mmap", _CELLS, capacity=_CAPACITY, path=str(path))
        for number in range(written, 1 << 30):
            cells, payloads = row(number)
            begins(telling)
            put(heap, cells, payloads)
            tell(telling, number)

    for _ in range(runs):
        tally.runs += 1
        told = in_child(write, rng.randrange(1, 60), rng.choice([0, 0, rng.uniform(0, 0.01)]))
        tally.injected += told.is_saving and not told.is_broken
        tally.committed += len(told.committed)
        tally.broken += told.is_broken
        for number in told.committed:
            put(behind, *row(number))
            put(ahead, *row(number + 1))
        written += len(told.committed)
        heap = _reopened(path)
        found, old, new = held(heap), held(behind), held(ahead)
        if found == new:  # committed, and killed before it could say so
            put(behind, *row(written))
            written += 1
            put(ahead, *row(written))
        else:
            # What the row was about to overtake may be gone: it was said before the first byte was written.
            tally.wrong += not found.items() <= old.items()
            tally.lost += not found.items() >= old.items() & new.items()
        heap.close()  # type: ignore[attr-defined]
    return tally


def _reopened(path: Path) -> Heap:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a record that is cut short: of the row that was being written
        return create("mmap", _CELLS, capacity=_CAPACITY, path=str(path), reopen=True)
