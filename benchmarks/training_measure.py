"""What training takes with a compressed buffer and with Stable-Baselines3's own, piece by piece in turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median, quantiles
from time import perf_counter, process_time
from typing import NamedTuple

import torch as th
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.utils import set_random_seed

from benchmarks.atari_training import PIECE, WARM_UP, make_model


class Cost(NamedTuple):
    """Seconds for one piece of training. CPU time is steadier than wall time where others use the machine too."""

    wall: float
    cpu: float


@dataclass(frozen=True)
class Comparison:
    """Two models that learnt the same from the same, with different buffers.

    :param algorithm: ``"PPO"`` or ``"DQN"``
    :param piece: how many steps each pair is about
    :param plain: with Stable-Baselines3's buffer, in the order in which they were measured
    :param compressed: with ours; each was measured right after or right before its counterpart
    """

    algorithm: str
    piece: int
    plain: tuple[Cost, ...]
    compressed: tuple[Cost, ...]

    def medians(self) -> tuple[Cost, Cost]:
        """What a piece takes with Stable-Baselines3's buffer, and with ours."""
        first, second = (Cost(*map(median, zip(*costs))) for costs in (self.plain, self.compressed))
        return first, second

    def overhead(self) -> Cost:
        """By which part ours takes longer than its counterpart; the median over all pairs."""
        wall, cpu = (median(self._overheads(clock)) for clock in (0, 1))
        return Cost(wall, cpu)

    def quartiles(self) -> tuple[Cost, Cost]:
        """Between which overheads the middle half of the pairs lies: how noisy the machine was."""
        (low_wall, _, high_wall), (low_cpu, _, high_cpu) = (
            quantiles(self._overheads(clock), n=4, method="inclusive") for clock in (0, 1)
        )
        return Cost(low_wall, low_cpu), Cost(high_wall, high_cpu)

    def _overheads(self, clock: int) -> list[float]:
        return [ours[clock] / theirs[clock] - 1 for theirs, ours in zip(self.plain, self.compressed)]


class DifferentPoliciesError(AssertionError):
    """The buffers did not return the same batches; what they take does not compare."""


def compare_training(algorithm: str, game: str, codec: str, rounds: int, report: Callable[[int], None]) -> Comparison:
    """Train two models in turn, with the same random numbers, and check that they end with the same weights.

    :param algorithm: ``"PPO"`` or ``"DQN"``
    :param game: the name of a game
    :param codec: of the compressed buffer
    :param rounds: how many pieces each model is timed for, at least 2
    :param report: told how many rounds are done
    """
    plain, compressed = (make_model(algorithm, game, choice) for choice in (None, codec))
    for model in (plain, compressed):
        _learn(model, WARM_UP[algorithm], seed=0)
    costs: dict[BaseAlgorithm, list[Cost]] = {plain: [], compressed: []}
    for index in range(rounds):
        # Who goes first finds the caches as the other left them, so they take turns in that as well.
        for model in (plain, compressed) if index % 2 == 0 else (compressed, plain):
            costs[model].append(_learn(model, PIECE[algorithm], seed=index + 1))
        report(index + 1)
    weights = zip(plain.policy.parameters(), compressed.policy.parameters())
    if not all(th.equal(one, other) for one, other in weights):
        raise DifferentPoliciesError(f"{algorithm} with {codec} did not end with the weights of its counterpart")
    return Comparison(algorithm, PIECE[algorithm], tuple(costs[plain]), tuple(costs[compressed]))


def _learn(model: BaseAlgorithm, steps: int, seed: int) -> Cost:
    # Models share the global random numbers; seeded here, both draw the same.
    set_random_seed(seed)
    wall, cpu = perf_counter(), process_time()
    model.learn(steps, reset_num_timesteps=False)
    return Cost(perf_counter() - wall, process_time() - cpu)
