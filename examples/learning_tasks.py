"""What is learnt with both kinds of buffers: Pong from rollouts, and Catch from a replay buffer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import ReplayBuffer, RolloutBuffer

from examples.catch import BALLS
from examples.demo_learner import make_learner
from examples.small_pong import BEST, WORST, make_pong_learner
from sb3_extra_buffers.compressed import CompressedReplayBuffer, CompressedRolloutBuffer

#: The two kinds of buffers.
COMPRESSED, SB3 = "compressed", "sb3"


@dataclass(frozen=True)
class Task:
    """A game and somebody who learns it.

    :param title: who learns what
    :param unit: what a return counts
    :param steps: how long a training takes, of all environments together
    :param quick: the same, to see that it runs
    :param worst: the lowest return
    :param best: the highest
    :param buffers: the names of both buffer classes
    :param make: a learner, given the kind of its buffer, the steps and the seed
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
    del steps  # nothing depends on it, so that a training that ends early is the beginning of a longer one
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
