"""Where figures were measured, so that two files of them can be compared with care."""

from __future__ import annotations

import os
import platform
import zlib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from sb3_extra_buffers import codecs

_LIBRARIES = ("numpy", "zstandard", "lz4", "isal", "numba", "llvmlite", "ale-py", "gymnasium", "opencv-python-headless")


def machine_info() -> dict[str, Any]:
    """Platform, interpreter, processors and versions of everything that influences speed. Names no host and no user."""
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
