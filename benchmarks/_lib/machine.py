"""The machine that figures were measured on."""

from __future__ import annotations

import os
import platform
import zlib
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks._lib.measure import interleaved_medians
from sb3_extra_buffers import codecs

_LIBRARIES = ("numpy", "zstandard", "lz4", "isal", "numba", "llvmlite", "ale-py", "gymnasium", "opencv-python-headless")


def machine_info() -> dict[str, Any]:
    """Platform, interpreter, processors and versions of libraries. Names no host and no user."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "platform": platform.platform(),
        "processor": _processor(),
        "cpus": os.cpu_count(),
        "usable_cpus": usable,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "zlib": zlib.ZLIB_RUNTIME_VERSION,
        "libraries": {name: found for name in _LIBRARIES if (found := _version(name)) is not None},
        "codecs": {name: [str(offer) for offer in offers] for name, offers in codecs.registry.offers().items()},
    }


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        with Path("/proc/cpuinfo").open() as lines:
            return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def thread_scaling(rounds: int = 9) -> float:
    """Speed-up of two threads over one for work without the interpreter lock.

    On a shared machine, two cores rarely double the speed. Compare the gain of threads with this figure.
    """
    data = bytes(range(256)) * 2000

    def work(_: int = 0) -> None:
        zlib.compress(data, 6)

    def in_turn() -> None:
        work()
        work()

    with ThreadPoolExecutor(2) as pool:
        seconds = interleaved_medians({"one": in_turn, "two": lambda: list(pool.map(work, range(2))).clear()}, rounds)
    return seconds["one"] / seconds["two"]
