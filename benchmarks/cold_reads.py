"""How long does it take to read a batch that is not in memory? See ``python -m benchmarks.cold_reads --help``."""

from __future__ import annotations

import argparse
import mmap
import os
import tempfile
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from rich import box
from rich.table import Table

from benchmarks._lib.console import counted, made_folder, positive, progress_bar, table_console
from sb3_extra_buffers.heaps import create

if TYPE_CHECKING:
    from sb3_extra_buffers_heap_mmap.mmap import MmapHeap

PAYLOAD_NBYTES = 800
_ROW = 1000


class Reads:
    """Batches of random cells of an ``mmap`` heap.

    :param folder: folder of the file
    :param nbytes: size of the file
    :param batch: payloads per batch
    """

    def __init__(self, folder: str, nbytes: int, batch: int) -> None:
        self._cells = nbytes // PAYLOAD_NBYTES // _ROW * _ROW
        self._batch = batch
        self._random = np.random.default_rng(0)
        heap: MmapHeap = create("mmap", self._cells, capacity=nbytes, folder=folder)  # type: ignore[assignment]
        self._heap = heap
        data = self._random.integers(0, 256, _ROW * PAYLOAD_NBYTES, np.uint8)
        with progress_bar() as bar, counted(bar, "cells", self._cells) as advance:
            for first in range(0, self._cells, _ROW):
                heap.reserve(np.arange(first, first + _ROW), len(data))[:] = data
                heap.commit(np.full(_ROW, PAYLOAD_NBYTES))
                advance(first)
        os.fsync(heap._file.fileno())

    def evict(self) -> None:
        """Remove the file from the page cache."""
        self._heap._advice.let_go()
        os.posix_fadvise(self._heap._file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def warm(self) -> None:
        """Read the whole file into the page cache."""
        file = self._heap._file.fileno()
        for place in range(0, self._heap.capacity, 1 << 24):
            os.pread(file, 1 << 24, place)

    def seconds(self, ahead: bool, prepare: Callable[[], None] | None, times: int) -> float:
        """Median time to read a batch.

        :param ahead: whether to request read-ahead first
        :param prepare: called before each batch, untimed
        :param times: number of batches
        """
        taken = []
        for _ in range(times):
            starts, lengths = self._heap.locate(self._random.integers(0, self._cells, self._batch))
            if prepare is not None:
                prepare()
            begin = perf_counter()
            if ahead:
                self._heap.bring(starts, lengths)
            for start in starts.tolist():
                bytes(self._heap.view(start, PAYLOAD_NBYTES))
            taken.append(perf_counter() - begin)
        return median(taken)

    def seconds_of_advice(self, times: int) -> float:
        """Median time to request read-ahead of a batch."""
        taken = []
        for _ in range(times):
            starts, lengths = self._heap.locate(self._random.integers(0, self._cells, self._batch))
            begin = perf_counter()
            self._heap.bring(starts, lengths)
            taken.append(perf_counter() - begin)
        return median(taken)

    def advise(self, option: int) -> None:
        """Set the ``madvise`` option of the mapping."""
        self._heap._advice._mapping.madvise(option)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cold_reads", description=__doc__)
    parser.add_argument("--megabytes", type=positive, default=1000, help="size of the file (default: %(default)s)")
    parser.add_argument("--batch", type=positive, default=256, help="payloads per batch (default: %(default)s)")
    parser.add_argument("--times", type=positive, default=15, help="batches of each kind (default: %(default)s)")
    parser.add_argument(
        "--folder",
        type=made_folder,
        default=tempfile.gettempdir(),
        help="folder on the disk to measure (default: %(default)s)",
    )
    options = parser.parse_args()
    reads = Reads(str(options.folder), options.megabytes * 10**6, options.batch)
    rows = {}
    reads.advise(mmap.MADV_NORMAL)
    rows["cold, as the system reads by itself"] = reads.seconds(False, reads.evict, min(options.times, 7))
    reads.advise(mmap.MADV_RANDOM)
    rows["cold, page by page"] = reads.seconds(False, reads.evict, options.times)
    rows["cold, with read-ahead"] = reads.seconds(True, reads.evict, options.times)
    reads.warm()
    rows["in memory, without read-ahead"] = reads.seconds(False, None, 4 * options.times)
    rows["in memory, with read-ahead"] = reads.seconds(True, None, 4 * options.times)
    rows["in memory, read-ahead request alone"] = reads.seconds_of_advice(4 * options.times)
    title = f"{options.batch} payloads of {PAYLOAD_NBYTES} bytes from a file of {options.megabytes} MB, medians"
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    table.add_column("how")
    table.add_column("ms", justify="right")
    for label, seconds in rows.items():
        table.add_row(label, f"{1000 * seconds:.2f}")
    table_console().print(table)


if __name__ == "__main__":
    main()
