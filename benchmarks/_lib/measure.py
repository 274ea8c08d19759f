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

    The calls take turns, so that a slow minute of the machine slows all of them alike and their ratios stay honest.
    Each is called once before, untimed.

    :param calls: what to time, by name
    :param rounds: how often each is timed
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
    """Adds up what runs inside of ``with``.

    :param wall: seconds that passed
    :param cpu: seconds that this process worked, all threads together; neighbours on the machine do not lengthen them
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
    """The median of what passed, and that of the work.

    :param watches: one for each time that something was done
    """
    return Stopwatch(median(watch.wall for watch in watches), median(watch.cpu for watch in watches))


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


class WrongBytesError(AssertionError):
    """A buffer or a codec returned other bytes than were stored. Its speed does not count."""
