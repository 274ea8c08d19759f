"""One training whose every episode and whose weights are remembered, so that another can be compared with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from time import monotonic, process_time
from typing import Any, NamedTuple

import numpy as np
import torch as th
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback

from examples.demo_training import WINDOW, Point
from examples.learning_tasks import TASKS

_CHECKPOINTS = 50

#: Called at each checkpoint with the steps so far and the recent mean return, if an episode has ended.
Reporter = Callable[[int, float | None], None]


class Weights(NamedTuple):
    """What the network was after so many steps."""

    step: int
    digest: str


@dataclass(frozen=True)
class Curve:
    """What a training showed.

    :param task: what was learnt
    :param buffer: the kind of the buffer
    :param seed: of games, network and exploration
    :param steps: how far it came
    :param episodes: the return of each episode, when it ended
    :param weights: digests of the network's weights, at the same steps in every training of the task
    :param cpu_seconds: what the process computed; on a machine with other work that says more than the time that passed
    """

    task: str
    buffer: str
    seed: int
    steps: int
    episodes: tuple[Point, ...]
    weights: tuple[Weights, ...]
    cpu_seconds: float

    def as_json(self) -> dict[str, Any]:
        """All of it, with each point as a pair."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Curve:
        """What ``as_json`` gave."""
        episodes = tuple(Point(*point) for point in content["episodes"])
        weights = tuple(Weights(*point) for point in content["weights"])
        return cls(**{**content, "episodes": episodes, "weights": weights})


def learn(task: str, buffer: str, seed: int, steps: int, minutes: float | None, report: Reporter) -> Curve:
    """Train on one thread, which makes a rerun alike to the last bit.

    :param task: what to learn
    :param buffer: the kind of the buffer
    :param seed: the same seed gives the same curve, whatever the buffer
    :param steps: how long, of all environments together
    :param minutes: when to stop even if the steps are not done
    :param report: told about the progress
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
    """The mean return of episodes, if there are any."""
    return float(np.mean([value for _, value in episodes])) if episodes else None


def _weights(model: BaseAlgorithm) -> Weights:
    digest = sha256()
    for name, tensor in sorted(model.policy.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.cpu().numpy().tobytes())
    return Weights(model.num_timesteps, digest.hexdigest()[:16])
