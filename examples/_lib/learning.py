"""The same trainings with compressed buffers and with Stable-Baselines3's, and their comparison."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict, dataclass
from hashlib import sha256
from multiprocessing import get_context
from time import monotonic, process_time
from typing import Any, NamedTuple

import numpy as np
import torch as th
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import ReplayBuffer, RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback

from examples._lib.catch import BALLS
from examples._lib.catch_learner import make_learner
from examples._lib.demo import WINDOW, Point
from examples._lib.small_pong import BEST, WORST, make_pong_learner
from sb3_extra_buffers.compressed import CompressedReplayBuffer, CompressedRolloutBuffer

#: The two kinds of buffers.
COMPRESSED, SB3 = "compressed", "sb3"
_CHECKPOINTS = 50


@dataclass(frozen=True)
class Task:
    """A game and a model that learns it.

    :param title: title of pictures and verdicts
    :param unit: unit of the returns
    :param steps: length of a training, in steps of all environments together
    :param quick: the same with ``--quick``
    :param worst: lowest return
    :param best: highest return
    :param buffers: names of both buffer classes
    :param make: makes the model, given the kind of its buffer, the steps and the seed
    """

    title: str
    unit: str
    steps: int
    quick: int
    worst: int
    best: int
    buffers: dict[str, str]
    make: Callable[[str, int, int], BaseAlgorithm]


def _make_catch(buffer: str, steps: int, seed: int) -> BaseAlgorithm:
    return make_learner(steps, seed, CompressedReplayBuffer if buffer == COMPRESSED else ReplayBuffer, {})


def _make_pong(buffer: str, steps: int, seed: int) -> BaseAlgorithm:
    del steps  # not used, so that a short training is the beginning of a longer one
    return make_pong_learner(seed, CompressedRolloutBuffer if buffer == COMPRESSED else RolloutBuffer)


TASKS = {
    "pong": Task(
        title="PPO learns Pong",
        unit="points ahead at the end of a game",
        steps=500_000,
        quick=4_096,
        worst=WORST,
        best=BEST,
        buffers={COMPRESSED: CompressedRolloutBuffer.__name__, SB3: RolloutBuffer.__name__},
        make=_make_pong,
    ),
    "catch": Task(
        title="DQN learns Catch",
        unit=f"balls caught, of {BALLS}",
        steps=20_000,
        quick=2_000,
        worst=0,
        best=BALLS,
        buffers={COMPRESSED: CompressedReplayBuffer.__name__, SB3: ReplayBuffer.__name__},
        make=_make_catch,
    ),
}


#: Called at each checkpoint with the number of steps and the recent mean return, if an episode has ended.
Reporter = Callable[[int, float | None], None]


class Weights(NamedTuple):
    """Digest of the weights after so many steps."""

    step: int
    digest: str


@dataclass(frozen=True)
class Curve:
    """Results of a training.

    :param task: name of the task
    :param buffer: kind of the buffer
    :param seed: seed of games, network and exploration
    :param steps: steps that were done
    :param episodes: returns of the episodes, at their ends
    :param weights: digests of the weights, at the same steps in every training of the task
    :param cpu_seconds: CPU time, which says more than wall time on a busy machine
    """

    task: str
    buffer: str
    seed: int
    steps: int
    episodes: tuple[Point, ...]
    weights: tuple[Weights, ...]
    cpu_seconds: float

    def as_json(self) -> dict[str, Any]:
        """As JSON, with each point as a pair."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Curve:
        """The curve of which ``as_json`` was written."""
        episodes = tuple(Point(*point) for point in content["episodes"])
        weights = tuple(Weights(*point) for point in content["weights"])
        return cls(**{**content, "episodes": episodes, "weights": weights})


def learn(task: str, buffer: str, seed: int, steps: int, minutes: float | None, report: Reporter) -> Curve:
    """Train on one thread, so that a second run is equal to the last bit.

    :param task: name of the task
    :param buffer: kind of the buffer
    :param seed: the same seed gives the same curve with both buffers
    :param steps: steps of all environments together
    :param minutes: time limit
    :param report: called with the progress
    """
    th.set_num_threads(1)
    model = TASKS[task].make(buffer, steps, seed)
    watch = _Watch(steps, minutes, report)
    start = process_time()
    model.learn(steps, callback=watch)
    if not watch.out_of_time:
        watch.weights.append(_weights(model))
    return Curve(
        task,
        buffer,
        seed,
        model.num_timesteps,
        tuple(watch.episodes),
        tuple(watch.weights),
        round(process_time() - start, 1),
    )


class _Watch(BaseCallback):
    def __init__(self, steps: int, minutes: float | None, report: Reporter) -> None:
        super().__init__()
        self.episodes: list[Point] = []
        self.weights: list[Weights] = []
        self.out_of_time = False
        self._every = max(1, steps // _CHECKPOINTS)
        self._due = self._every
        self._end = monotonic() + minutes * 60 if minutes is not None else float("inf")
        self._report = report

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if "episode" in info:
                self.episodes.append(Point(self.num_timesteps, float(info["episode"]["r"])))
        if self.num_timesteps >= self._due:
            self._due += self._every
            self.weights.append(_weights(self.model))
            self._report(self.num_timesteps, mean_return(self.episodes[-WINDOW:]))
        self.out_of_time = monotonic() > self._end
        return not self.out_of_time


def mean_return(episodes: Sequence[Point]) -> float | None:
    """Mean return of episodes, if there are any."""
    return float(np.mean([value for _, value in episodes])) if episodes else None


def _weights(model: BaseAlgorithm) -> Weights:
    digest = sha256()
    for name, tensor in sorted(model.policy.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.cpu().numpy().tobytes())
    return Weights(model.num_timesteps, digest.hexdigest()[:16])


class Pair(NamedTuple):
    """The same training with both kinds of buffers."""

    compressed: Curve
    sb3: Curve


@dataclass(frozen=True)
class Verdict:
    """Whether both trainings are equal.

    :param task: name of the task
    :param seed: seed of both trainings
    :param steps: steps that both have done; only these are compared
    :param episodes: episodes that ended within these steps
    :param checkpoints: number of compared weights
    :param identical: whether all returns and weights are equal to the last bit
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
        outcome = "identical" if self.identical else "different, which is a bug"
        learnt = "no episode ended"
        if self.first is not None:
            learnt = f"return {self.first:+.1f} at first, {self.last:+.1f} at last"
        return (
            f"{TASKS[self.task].title}, seed {self.seed}: {learnt}; with both buffers over {self.steps:,} steps, "
            f"{self.episodes} episodes and the weights at {self.checkpoints} checkpoints: {outcome}"
        )

    def as_json(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def learn_in_pairs(task: str, seeds: Sequence[int], steps: int, options: argparse.Namespace) -> Iterator[Pair]:
    """Train with both buffers for each seed, in separate processes.

    :param task: name of the task
    :param seeds: one pair per seed
    :param steps: length of the trainings
    :param options: ``minutes`` and ``jobs`` of the command line
    """
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        runs = [
            pool.submit(_learn, task, buffer, seed, steps, options.minutes)
            for seed in seeds
            for buffer in (COMPRESSED, SB3)
        ]
        yield from map(_pair, runs[::2], runs[1::2])


def verdict(pair: Pair) -> Verdict:
    """Compare the steps that both trainings have done.

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
