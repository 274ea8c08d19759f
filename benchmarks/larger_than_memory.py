"""A heap that is really larger than memory: ``python -m benchmarks.larger_than_memory --help``.

A process that may hold little memory, the cache of its files included, fills a heap ``mmap`` of several times as much
and reads batches of random payloads from it; each is compared with what was written.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.memory_limit import MemoryLimit, NotPermittedError, memory_limit

if TYPE_CHECKING:
    from sb3_extra_buffers_heap_mmap.mmap import MmapHeap

PAYLOAD_NBYTES, _ROW = 4096, 64
_PATTERN = np.arange(PAYLOAD_NBYTES, dtype=np.uint32) * np.uint32(2_654_435_761)


def payloads(cells: NDArray[np.int64]) -> NDArray[np.uint8]:
    """What cells hold: bytes that differ from cell to cell."""
    return ((_PATTERN + cells.astype(np.uint32)[:, np.newaxis] * np.uint32(40_503)) >> np.uint32(16)).astype(np.uint8)


def batch(heap: MmapHeap, cells: NDArray[np.int64], ahead: bool) -> tuple[float, int]:
    """Read a batch: how long it took, and how many payloads were wrong."""
    starts, lengths = heap.locate(cells)
    begin = perf_counter()
    if ahead:
        heap.bring(starts, lengths)
    found = [bytes(heap.view(start, PAYLOAD_NBYTES)) for start in starts.tolist()]
    seconds = perf_counter() - begin
    expected = payloads(cells)
    return seconds, sum(one != other.tobytes() for one, other in zip(found, expected))


def fill_and_read(nbytes: int, batches: int, size: int, folder: str) -> dict[str, Any]:
    """Fill a heap, and read batches with read-ahead and without."""
    from sb3_extra_buffers.heaps import create

    cells = nbytes // PAYLOAD_NBYTES // _ROW * _ROW
    capacity, resident = cells * PAYLOAD_NBYTES, 1 << 26
    heap: MmapHeap = create("mmap", cells, capacity=capacity, folder=folder, resident=resident)  # type: ignore[assignment]
    begin = perf_counter()
    for first in range(0, cells, _ROW):
        row = np.arange(first, first + _ROW)
        heap.reserve(row, _ROW * PAYLOAD_NBYTES)[:] = payloads(row).reshape(-1)
        heap.commit(np.full(_ROW, PAYLOAD_NBYTES))
    found: dict[str, Any] = {"cells": cells, "fill_s": perf_counter() - begin, "wrong": 0}
    rng = np.random.default_rng(0)
    for name, ahead in (("ahead_ms", True), ("alone_ms", False)):
        results = [batch(heap, rng.integers(0, cells, size), ahead) for _ in range(batches)]
        found[name] = 1000 * median(seconds for seconds, _ in results)
        found["wrong"] += sum(wrong for _, wrong in results)
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--megabytes", type=int, default=1024, help="size of the heap")
    parser.add_argument("--limit", type=int, default=192, help="megabytes that the process may hold, with its cache")
    parser.add_argument("--batches", type=int, default=30, help="of each kind")
    parser.add_argument("--size", type=int, default=256, help="payloads in a batch")
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="on a disk")
    parser.add_argument("--inside", type=json.loads, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.inside is not None:
        MemoryLimit(Path(given.inside[0]), given.inside[1]).enter()
        print(json.dumps(fill_and_read(given.megabytes << 20, given.batches, given.size, given.folder)))
        return 0
    try:
        with memory_limit(given.limit << 20) as limit:
            inside = json.dumps([str(limit.folder), limit.is_second])
            options = [f"--{name}={getattr(given, name)}" for name in ("megabytes", "batches", "size", "folder")]
            command = [sys.executable, "-m", "benchmarks.larger_than_memory", *options, "--inside", inside]
            found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
            most = limit.most_nbytes
    except NotPermittedError as error:
        print(f"Not measured: {error}.")
        return 0
    print(f"{given.megabytes} MB in a process that may hold {given.limit} MB; the most that it held: {most >> 20} MB")
    print(f"filled in {found['fill_s']:.1f} s; a batch of {given.size} payloads of {PAYLOAD_NBYTES} bytes, medians:")
    print(f"  with read-ahead    {found['ahead_ms']:8.1f} ms")
    print(f"  without            {found['alone_ms']:8.1f} ms")
    print(f"wrong payloads: {found['wrong']} of {2 * given.batches * given.size}")
    return int(found["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
