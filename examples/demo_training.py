"""One training run, watched: what the learner achieves, and what memory its buffer holds meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback

from benchmarks.resident import resident_nbytes
from examples.demo_learner import WARM_UP, make_learner, mean_return
from sb3_extra_buffers.compressed import BaseCompressedBuffer, MemoryReport

#: Over how many episodes the curve of returns is averaged.
WINDOW = 20
_SAMPLES = 40

#: Called now and then with the steps so far and the recent mean return.
Reporter = Callable[[int, float], None]


class Point(NamedTuple):
    """Something that was measured after so many steps."""

    step: int
    value: float


@dataclass(frozen=True)
class Run:
    """What a training run showed.

    :param episodes: the return of each episode, when it ended
    :param memory: resident bytes of the buffer over time; the last is what the process gave back when it was deleted
    :param before: mean return of the learner before it learnt
    :param after: mean return afterwards
    :param seconds: what the training took
    :param report: what the buffer says about itself; SB3's says nothing
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
    """Learn to catch, and let go of the buffer afterwards.

    :param steps: how long
    :param seed: the same seed gives the same returns, whatever the buffer
    :param buffer_class: where transitions are kept
    :param buffer_kwargs: what that class takes besides
    :param report: told about the progress
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
    # Whoever still refers to the buffer must let go of it, also the local variables that SB3 shows to callbacks.
    del buffer
    model.replay_buffer = None
    watch.locals.clear()
    # Libraries, network and optimizer are there with any buffer: what is left without one is not its memory.
    rest = resident_nbytes()
    memory = (Point(0, 0), *(Point(step, max(0, nbytes - rest)) for step, nbytes in watch.resident))
    return Run(tuple(watch.episodes), memory, before, after, seconds, summary)


class _Watch(BaseCallback):
    def __init__(self, steps: int, report: Reporter) -> None:
        super().__init__()
        self.episodes: list[Point] = []
        self.resident: list[Point] = []
        self._every = max(1, steps // _SAMPLES)
        # The optimizer takes its memory with the first update; before, resident memory would be read too low.
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
