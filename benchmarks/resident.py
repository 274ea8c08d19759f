"""How much memory a process really holds, and a way to ask a fresh process that question."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


def resident_nbytes() -> int:
    """The memory that only this process holds, in bytes, after everything that can be given back was given back.

    On Linux these are the resident anonymous pages, so mapped files do not count; elsewhere the unique set size.
    """
    gc.collect()
    _trim_malloc()
    if sys.platform == "linux":
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    return _unique_nbytes()


def measure_in_child(function: Callable[..., T], *args: Any) -> T:
    """Call ``function`` in a new process and return its result. What it raises there is raised here.

    A new process has no memory left over from earlier measurements, and takes nobody along when it crashes.

    :param function: defined at the top level of a module
    :param args: its arguments; they and the result are pickled
    """
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as executor:
        try:
            return executor.submit(function, *args).result()
        except BrokenProcessPool as error:
            raise ChildProcessError(f"the process that ran {function.__name__}() died without an answer") from error


def _trim_malloc() -> None:
    if sys.platform != "linux":
        return
    # glibc keeps freed memory for itself; other C libraries have no such function.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _unique_nbytes() -> int:
    try:
        import psutil
    except ImportError as error:
        raise ImportError("Memory on this system is measured with psutil. Run: pip install psutil") from error
    return int(psutil.Process().memory_full_info().uss)
