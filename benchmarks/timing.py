"""Timing that a noisy machine cannot tilt in favour of one side."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter


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
