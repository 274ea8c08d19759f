"""Time and memory, measured so that a busy machine does not favour one side."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any, TypeVar


def interleaved_medians(calls: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """The median duration of each call in seconds.

    The calls alternate, so that a slow moment of the machine affects all of them. Each is called once before, untimed.

    :param calls: functions by name
    :param rounds: number of timed calls of each
    """
    for call in calls.values():
        call()
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = perf_counter()
            call()
            seconds[name].append(perf_counter() - start)
    return {name: median(durations) for name, durations in seconds.items()}


@dataclass
class Stopwatch:
    """Adds up the time of ``with`` blocks.

    :param wall: wall seconds
    :param cpu: CPU seconds of all threads of this process; other processes do not lengthen them
    """

    wall: float = 0.0
    cpu: float = 0.0

    def __enter__(self) -> None:
        self._starts = perf_counter(), process_time()

    def __exit__(self, *_: object) -> None:
        wall, cpu = self._starts
        self.cpu += process_time() - cpu
        self.wall += perf_counter() - wall


def median_of(watches: Sequence[Stopwatch]) -> Stopwatch:
    """Median wall time and median CPU time.

    :param watches: one for each repetition
    """
    return Stopwatch(median(watch.wall for watch in watches), median(watch.cpu for watch in watches))


T = TypeVar("T")


def resident_nbytes() -> int:
    """Private resident memory of this process in bytes, after garbage collection and ``malloc_trim``.

    On Linux, resident anonymous pages, without mapped files; elsewhere the unique set size.
    """
    gc.collect()
    _trim_malloc()
    if sys.platform == "linux":
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    return _unique_nbytes()


def measure_in_child(function: Callable[..., T], *args: Any) -> T:
    """Call ``function`` in a new process and return its result. Exceptions are raised here.

    A new process has no memory left over from earlier measurements, and may crash.

    :param function: defined at the top level of a module
    :param args: its arguments; arguments and result are pickled
    """
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as executor:
        try:
            return executor.submit(function, *args).result()
        except BrokenProcessPool as error:
            raise ChildProcessError(f"the process that ran {function.__name__}() died without an answer") from error


def _trim_malloc() -> None:
    if sys.platform != "linux":
        return
    # glibc keeps freed memory; other C libraries have no such function.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _unique_nbytes() -> int:
    try:
        import psutil
    except ImportError as error:
        raise ImportError("Memory on this system is measured with psutil. Run: pip install psutil") from error
    return int(psutil.Process().memory_full_info().uss)


class WrongBytesError(AssertionError):
    """A buffer or a codec returned other bytes than were stored. Its speed does not count."""
