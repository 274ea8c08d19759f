"""Timing that a noisy machine cannot tilt in favour of one side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter, process_time


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
