"""Two trainings that differ in nothing but the buffer: run side by side, then compared."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from typing import Any, NamedTuple

from examples.demo_training import WINDOW
from examples.learning_run import Curve, learn, mean_return
from examples.learning_tasks import COMPRESSED, SB3, TASKS


class Pair(NamedTuple):
    """The same training with both kinds of buffers."""

    compressed: Curve
    sb3: Curve


@dataclass(frozen=True)
class Verdict:
    """Whether the buffer made a difference.

    :param task: what was learnt
    :param seed: of both trainings
    :param steps: that both have done; only these are compared
    :param episodes: that ended within them
    :param checkpoints: how often the weights were compared
    :param identical: every return and every weight, to the last bit
    :param first: mean return of the first 20 episodes, if any ended
    :param last: mean return of the last 20
    """

    task: str
    seed: int
    steps: int
    episodes: int
    checkpoints: int
    identical: bool
    first: float | None
    last: float | None

    def __str__(self) -> str:
        outcome = "identical" if self.identical else "different, which must not be"
        learnt = "no episode ended"
        if self.first is not None:
            learnt = f"return {self.first:+.1f} at first, {self.last:+.1f} at last"
        return (
            f"{TASKS[self.task].title}, seed {self.seed}: {learnt}; with both buffers over {self.steps:,} steps, "
            f"{self.episodes} episodes and the weights at {self.checkpoints} checkpoints: {outcome}"
        )

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return asdict(self)


def learn_in_pairs(task: str, seeds: Sequence[int], steps: int, options: argparse.Namespace) -> Iterator[Pair]:
    """Train with both buffers for each seed, in processes of their own.

    :param task: what to learn
    :param seeds: one pair each
    :param steps: how long
    :param options: how many minutes and how many processes
    """
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        runs = [
            pool.submit(_learn, task, buffer, seed, steps, options.minutes)
            for seed in seeds
            for buffer in (COMPRESSED, SB3)
        ]
        yield from map(_pair, runs[::2], runs[1::2])


def verdict(pair: Pair) -> Verdict:
    """Compare what both trainings have done, and nothing that only one of them came to.

    :param pair: two trainings
    """
    compressed, sb3 = pair
    steps = min(compressed.steps, sb3.steps)
    episodes = [[point for point in curve.episodes if point.step <= steps] for curve in pair]
    checkpoints = min(len(compressed.weights), len(sb3.weights))
    same_weights = compressed.weights[:checkpoints] == sb3.weights[:checkpoints]
    return Verdict(
        compressed.task,
        compressed.seed,
        steps,
        len(episodes[0]),
        checkpoints,
        identical=episodes[0] == episodes[1] and same_weights,
        first=mean_return(episodes[0][:WINDOW]),
        last=mean_return(episodes[0][-WINDOW:]),
    )


def _learn(task: str, buffer: str, seed: int, steps: int, minutes: float | None) -> Curve:
    label = f"{TASKS[task].title}, {TASKS[task].buffers[buffer]}, seed {seed}"

    def report(step: int, mean: float | None) -> None:
        learnt = "" if mean is None else f", return {mean:+.1f}"
        print(f"{label}: step {step:,} of {steps:,}{learnt}", file=sys.stderr, flush=True)

    return learn(task, buffer, seed, steps, minutes, report)


def _pair(compressed: Future[Curve], sb3: Future[Curve]) -> Pair:
    return Pair(compressed.result(), sb3.result())
