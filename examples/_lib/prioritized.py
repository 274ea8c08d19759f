"""Prioritized against uniform replay: the blind cliffwalk of Schaul et al., and Catch from images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback

from examples._lib.catch_learner import make_learner
from sb3_extra_buffers.compressed import CompressedPrioritizedReplayBuffer, CompressedReplayBuffer
from sb3_extra_buffers.prioritized import PrioritizedDQN

UNIFORM, PRIORITIZED = "uniform", "prioritized"
REPLAYS = (UNIFORM, PRIORITIZED)
#: A walk that was not learnt after so many updates is given up.
MOST_UPDATES = 2_000_000
_STEP_SIZE = 0.25
_CONVERGED = 1e-3
#: Updates between two looks at the error.
_INTERVAL = 10


@dataclass(frozen=True)
class Walk:
    """A cliffwalk that was learnt.

    :param replay: ``"uniform"`` or ``"prioritized"``
    :param states: number of states
    :param seed: seed of the initial values and of the draws
    :param updates: number of updates until the values were right
    """

    replay: str
    states: int
    seed: int
    updates: int


def cliffwalk(replay: str, states: int, seed: int) -> Walk:
    """Learn the values of a blind cliffwalk by Q-learning from a buffer, one transition per update.

    One of two actions leads to the next state, the other one ends the episode. Only the last right action has a reward.
    The buffer holds what all sequences of actions lead to, ``2 ** (states + 1) - 2`` transitions, in random order. One
    of them has a reward. (Schaul et al., Prioritized Experience Replay, section 3.1 and appendix B.1.)

    :param replay: ``"uniform"`` or ``"prioritized"``
    :param states: number of states
    :param seed: seed of the initial values and of the draws
    """
    buffer, gamma = _memory(replay, states, seed), 1 - 1 / states
    values = np.random.default_rng(seed).normal(0, 0.1, (states + 1, 2))
    values[states] = 0
    truth = np.zeros((states, 2))
    truth[:, 0] = gamma ** np.arange(states - 1, -1, -1)
    np.random.seed(seed)
    updates = 0
    while updates < MOST_UPDATES:
        batch = buffer.sample(1)
        state, following, action = (
            int(part.item()) for part in (batch.observations, batch.next_observations, batch.actions)
        )
        goal = batch.rewards.item() + (1 - batch.dones.item()) * gamma * values[following].max()
        error = goal - values[state, action]
        values[state, action] += _STEP_SIZE * error
        updates += 1
        if isinstance(buffer, CompressedPrioritizedReplayBuffer):
            buffer.update_priorities(batch.leaf_nodes_indices, [abs(error)], 1.0)
        if updates % _INTERVAL == 0 and ((values[:states] - truth) ** 2).mean() < _CONVERGED:
            break
    return Walk(replay, states, seed, updates)


def _memory(replay: str, states: int, seed: int) -> CompressedReplayBuffer:
    """A buffer with every transition as often as all sequences of actions contain it."""
    # Of 2 ** states sequences, 2 ** (states - s) come to state s; half of them go on.
    transitions = [
        (state, action) for state in range(states) for action in (0, 1) for _ in range(2 ** (states - state - 1))
    ]
    space, actions = spaces.Box(0, states, (1,), np.float32), spaces.Discrete(2)
    settings: dict[str, Any] = {"device": "cpu", "compression_method": "none"}
    buffer: CompressedReplayBuffer
    if replay == UNIFORM:
        buffer = CompressedReplayBuffer(len(transitions), space, actions, **settings)
    else:
        buffer = CompressedPrioritizedReplayBuffer(len(transitions), space, actions, **settings, alpha=1.0)
    for number in np.random.default_rng(seed).permutation(len(transitions)):
        state, action = transitions[number]
        is_end, obs = action == 1 or state == states - 1, np.full((1, 1), state, np.float32)
        reward = np.array([float(action == 0 and state == states - 1)])
        buffer.add(obs, obs + 1, np.array([action]), reward, np.array([is_end]), [{}])
    return buffer


@dataclass(frozen=True)
class Curve:
    """Returns of all episodes of a training.

    :param replay: ``"uniform"`` or ``"prioritized"``
    :param seed: seed of games, network and exploration
    :param episodes: pairs of a step and a return
    """

    replay: str
    seed: int
    episodes: tuple[tuple[int, float], ...]


def catch(replay: str, seed: int, steps: int, report: Callable[[int], None] = lambda _done: None) -> Curve:
    """Train DQN to catch balls from images, on one thread. Only the replay differs.

    :param replay: ``"uniform"`` or ``"prioritized"``
    :param seed: seed of games, network and exploration
    :param steps: length of the training
    :param report: called with the number of steps now and then
    """
    th.set_num_threads(1)
    algorithm: type[DQN] = DQN if replay == UNIFORM else PrioritizedDQN
    kind = CompressedReplayBuffer if replay == UNIFORM else CompressedPrioritizedReplayBuffer
    model = make_learner(steps, seed, kind, {}, algorithm=algorithm)
    watch = _Watch(report)
    model.learn(steps, callback=watch)
    return Curve(replay, seed, tuple(watch.episodes))


class _Watch(BaseCallback):
    def __init__(self, report: Callable[[int], None]) -> None:
        super().__init__()
        self.episodes: list[tuple[int, float]] = []
        self._report = report

    def _on_step(self) -> bool:
        ended = [info["episode"]["r"] for info in self.locals["infos"] if "episode" in info]
        self.episodes += [(self.num_timesteps, float(found)) for found in ended]
        self._report(self.num_timesteps)
        return True


def as_json(walks: list[Walk], curves: list[Curve]) -> dict[str, Any]:
    """Everything as JSON values."""
    return {"cliffwalk": [asdict(walk) for walk in walks], "catch": [asdict(curve) for curve in curves]}


def from_json(content: dict[str, Any]) -> tuple[list[Walk], list[Curve]]:
    """The inverse of :func:`as_json`."""
    walks = [Walk(**walk) for walk in content["cliffwalk"]]
    curves = [
        Curve(curve["replay"], curve["seed"], tuple((step, found) for step, found in curve["episodes"]))
        for curve in content["catch"]
    ]
    return walks, curves
