"""The training run of the demo: returns, and memory of the buffer over time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback

from benchmarks._lib.measure import resident_nbytes
from examples._lib.catch_learner import WARM_UP, make_learner, mean_return
from sb3_extra_buffers.compressed import BaseCompressedBuffer, MemoryReport

#: Episodes in a mean return.
WINDOW = 20
_SAMPLES = 40

#: Called now and then with the number of steps and the recent mean return.
Reporter = Callable[[int, float], None]


class Point(NamedTuple):
    """A value after so many steps."""

    step: int
    value: float


@dataclass(frozen=True)
class Run:
    """Results of a training run.

    :param episodes: returns of the episodes, at their ends
    :param memory: resident bytes of the buffer over time
    :param before: mean return before the training
    :param after: mean return after the training
    :param seconds: duration of the training
    :param report: memory report of a compressed buffer
    """

    episodes: tuple[Point, ...]
    memory: tuple[Point, ...]
    before: float
    after: float
    seconds: float
    report: MemoryReport | None


def train(
    steps: int, seed: int, buffer_class: type[ReplayBuffer], buffer_kwargs: dict[str, Any], report: Reporter
) -> Run:
    """Train a DQN on Catch, and delete its buffer afterwards.

    :param steps: length of the training
    :param seed: the same seed gives the same returns with every buffer
    :param buffer_class: class of the replay buffer
    :param buffer_kwargs: further arguments of that class
    :param report: called with the progress
    """
    model = make_learner(steps, seed, buffer_class, buffer_kwargs)
    before = mean_return(model, seed)
    watch = _Watch(steps, report)
    start = perf_counter()
    model.learn(steps, callback=watch)
    seconds = perf_counter() - start
    after = mean_return(model, seed)
    buffer = model.replay_buffer
    summary = buffer.memory_report() if isinstance(buffer, BaseCompressedBuffer) else None
    watch.resident.append(Point(model.num_timesteps, resident_nbytes()))
    # Delete every reference to the buffer, also the local variables that SB3 passes to callbacks.
    del buffer
    model.replay_buffer = None
    watch.locals.clear()
    # Memory without the buffer: libraries, network and optimizer.
    rest = resident_nbytes()
    memory = (Point(0, 0), *(Point(step, max(0, nbytes - rest)) for step, nbytes in watch.resident))
    return Run(tuple(watch.episodes), memory, before, after, seconds, summary)


class _Watch(BaseCallback):
    def __init__(self, steps: int, report: Reporter) -> None:
        super().__init__()
        self.episodes: list[Point] = []
        self.resident: list[Point] = []
        self._every = max(1, steps // _SAMPLES)
        # The optimizer allocates its memory at the first update. Do not measure before it.
        self._due = max(WARM_UP, self._every)
        self._report = report

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if "episode" in info:
                self.episodes.append(Point(self.num_timesteps, float(info["episode"]["r"])))
        if self.num_timesteps >= self._due:
            self._due += self._every
            self.resident.append(Point(self.num_timesteps, resident_nbytes()))
            recent = [value for _, value in self.episodes[-WINDOW:]]
            self._report(self.num_timesteps, float(np.mean(recent)) if recent else 0.0)
        return True
