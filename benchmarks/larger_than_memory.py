"""A heap that is larger than memory. See ``python -m benchmarks.larger_than_memory --help``.

A process in a control group with little memory, page cache included, fills an ``mmap`` heap of several times as much.
It then reads batches of random payloads and compares each with what was written.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sb3_extra_buffers_heap_mmap.mmap import MmapHeap

_CONTROL_GROUPS = Path("/sys/fs/cgroup")
PAYLOAD_NBYTES, _ROW = 4096, 64
_PATTERN = np.arange(PAYLOAD_NBYTES, dtype=np.uint32) * np.uint32(2_654_435_761)


def payloads(cells: NDArray[np.int64]) -> NDArray[np.uint8]:
    """The payloads of cells: bytes that differ from cell to cell."""
    return ((_PATTERN + cells.astype(np.uint32)[:, np.newaxis] * np.uint32(40_503)) >> np.uint32(16)).astype(np.uint8)


def batch(heap: MmapHeap, cells: NDArray[np.int64], ahead: bool) -> tuple[float, int]:
    """Read a batch. Returns the seconds, and the number of wrong payloads."""
    starts, lengths = heap.locate(cells)
    begin = perf_counter()
    if ahead:
        heap.bring(starts, lengths)
    found = [bytes(heap.view(start, PAYLOAD_NBYTES)) for start in starts.tolist()]
    seconds = perf_counter() - begin
    expected = payloads(cells)
    return seconds, sum(one != other.tobytes() for one, other in zip(found, expected))


def fill_and_read(nbytes: int, batches: int, size: int, folder: str) -> dict[str, Any]:
    """Fill a heap, then read batches with and without read-ahead."""
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
    """Measure in a limited process, and print the result."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.larger_than_memory", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--megabytes", type=int, default=1024, help="size of the heap (default: %(default)s)")
    parser.add_argument(
        "--limit", type=int, default=192, help="memory limit in megabytes, page cache included (default: %(default)s)"
    )
    parser.add_argument(
        "--batches", type=int, default=30, help="batches with and without read-ahead (default: %(default)s)"
    )
    parser.add_argument("--size", type=int, default=256, help="payloads per batch (default: %(default)s)")
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="folder of the file (default: %(default)s)")
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
    print(f"{given.megabytes} MB in a process limited to {given.limit} MB; its peak: {most >> 20} MB")
    print(f"filled in {found['fill_s']:.1f} s; a batch of {given.size} payloads of {PAYLOAD_NBYTES} bytes, medians:")
    print(f"  with read-ahead    {found['ahead_ms']:8.1f} ms")
    print(f"  without            {found['alone_ms']:8.1f} ms")
    print(f"wrong payloads: {found['wrong']} of {2 * given.batches * given.size}")
    return int(found["wrong"] > 0)


class NotPermittedError(Exception):
    """No control group can be made; the message says why."""


@dataclass(frozen=True)
class MemoryLimit:
    """A control group. It limits the memory of its processes, page cache included.

    :param folder: folder of the group
    :param is_second: whether it is a version 2 control group
    """

    folder: Path
    is_second: bool

    def enter(self) -> None:
        """Move this process into the group."""
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    @property
    def most_nbytes(self) -> int:
        """Peak memory of the group."""
        name = "memory.peak" if self.is_second else "memory.max_usage_in_bytes"
        return int((self.folder / name).read_text())


@contextmanager
def memory_limit(nbytes: int) -> Iterator[MemoryLimit]:
    """A control group limited to so many bytes. It is removed at the end."""
    folder, is_second = _own_group()
    limit = MemoryLimit(folder / f"sb3-extra-buffers-{os.getpid()}", is_second)
    try:
        limit.folder.mkdir()
    except OSError as error:
        raise NotPermittedError(f"no control group can be made in {folder} ({error.strerror})") from None
    try:
        name = "memory.max" if is_second else "memory.limit_in_bytes"
        try:
            (limit.folder / name).write_text(str(nbytes))
        except OSError as error:
            raise NotPermittedError(f"{limit.folder / name} cannot be set ({error.strerror})") from None
        yield limit
    finally:
        limit.folder.rmdir()


def _own_group() -> tuple[Path, bool]:
    """Folder of this process's control group, and whether it is version 2."""
    path = Path("/proc/self/cgroup")
    lines = [line.split(":", 2) for line in path.read_text().splitlines()] if path.exists() else []
    for _, controllers, group in lines:
        if "memory" in controllers.split(","):
            return _CONTROL_GROUPS / "memory" / group.lstrip("/"), False
    for _, controllers, group in lines:
        if not controllers and (_CONTROL_GROUPS / "cgroup.controllers").exists():
            return _CONTROL_GROUPS / group.lstrip("/"), True
    raise NotPermittedError("this system has no control groups with memory")


if __name__ == "__main__":
    sys.exit(main())
