"""How much longer does training take with compressed buffers? See ``python -m benchmarks.training --help``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
import stable_baselines3
import torch as th
from rich import box
from rich.table import Table
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import VecEnv, VecFrameStack, VecTransposeImage

from benchmarks._lib.atari import STACK, ale_games
from benchmarks._lib.console import add_json_option, counted, positive, progress_bar, table_console
from benchmarks._lib.machine import machine_info
from sb3_extra_buffers import codecs
from sb3_extra_buffers.compressed import CompressedReplayBuffer, CompressedRolloutBuffer
from sb3_extra_buffers.errors import ExtraBuffersError

#: Steps that are timed together: a rollout with its updates for PPO, some updates for DQN.
PIECE = {"PPO": 128 * 8, "DQN": 240}
#: Steps before timing starts: they compile code, run the first updates and fill the replay buffer.
WARM_UP = {"PPO": 128 * 8, "DQN": 1000}
_DQN_BUFFER = 2000
_SEED = 0
_NOTE = (
    "Medians over {rounds} pieces of training with each buffer, alternating; overhead: median over the pairs.\n"
    "Both models used the same random numbers and ended with the same weights, bit by bit.\n"
    "PPO: 8 environments, rollouts of 128 steps, 4 epochs. DQN: 1 environment, an update every 4 steps.\n"
    "torch: {threads}."
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train pairs of models, print the cost of the buffers, and write the figures if ``--json`` is given."""
    options = _options(arguments)
    rounds = options.rounds or (2 if options.quick else 12)
    th.set_num_threads(options.torch_threads)
    try:
        codec = str(codecs.bind(options.codec, codecs.CellSpec(np.uint8, 4 * 84 * 84)).spec)
        comparisons = []
        with progress_bar() as progress:
            for algorithm in options.algorithms:
                with counted(progress, f"{algorithm} on {options.game}", rounds) as report:
                    comparisons.append(compare_training(algorithm, options.game, codec, rounds, report))
    except ExtraBuffersError as error:
        sys.exit(f"error: {error}")
    threads = f"{options.torch_threads} thread{'s' if options.torch_threads > 1 else ''}"
    title = f"{options.game}, SB3's buffers and compressed ones with {codec}"
    console = table_console()
    console.print(_table(title, comparisons))
    console.print(_NOTE.format(rounds=rounds, threads=threads), highlight=False)
    if options.json is not None:
        content = {
            "machine": machine_info(),
            "settings": {
                "game": options.game,
                "codec": codec,
                "rounds": rounds,
                "torch_threads": options.torch_threads,
                "torch": th.__version__,
                "stable_baselines3": stable_baselines3.__version__,
            },
            "comparisons": [_figures(comparison) for comparison in comparisons],
        }
        options.json.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.training",
        description="Train PPO and DQN on an Atari game with compressed buffers and with those of Stable-Baselines3.",
        epilog="example: python -m benchmarks.training --algorithms DQN --game MsPacman --codec lz4-block/0",
    )
    both = ["PPO", "DQN"]
    parser.add_argument(
        "--algorithms", nargs="+", choices=both, default=both, help="algorithms to train (default: both)"
    )
    parser.add_argument("--game", default="Pong", help="name of an ALE game (default: %(default)s)")
    parser.add_argument("--codec", default="zstd-3", help="codec of the compressed buffers (default: zstd-3, level -3)")
    parser.add_argument("--rounds", type=positive, help="pieces of training with each buffer (default: 12)")
    threads = "threads of torch (default: 1, which keeps CPU time comparable)"
    parser.add_argument("--torch-threads", type=positive, default=1, metavar="N", help=threads)
    parser.add_argument("--quick", action="store_true", help="about a minute: 2 rounds, unless --rounds says more")
    add_json_option(parser)
    options = parser.parse_args(arguments)
    if options.rounds == 1:
        parser.error("--rounds 1: it must be at least 2, for the spread")
    return options


def _table(title: str, comparisons: Sequence[Comparison]) -> Table:
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    table.add_column("\nmodel")
    for clock in ("wall", "CPU"):
        for heading in (f"{clock} s\nSB3", f"{clock} s\ncompressed", f"{clock}\noverhead", "its\nquartiles"):
            table.add_column(heading, justify="right", no_wrap=True)
    for comparison in comparisons:
        (plain, compressed), overhead, (low, high) = comparison.medians(), comparison.overhead(), comparison.quartiles()
        row = [f"{comparison.algorithm}, {comparison.piece:,} steps"]
        for at in (0, 1):
            spread = f"{low[at]:+.1%} to {high[at]:+.1%}"
            row += [f"{plain[at]:.2f}", f"{compressed[at]:.2f}", f"{overhead[at]:+.1%}", spread]
        table.add_row(*row)
    return table


def _figures(comparison: Comparison) -> dict[str, object]:
    plain, compressed = comparison.medians()
    return {
        "algorithm": comparison.algorithm,
        "steps_per_piece": comparison.piece,
        "median_seconds": {"sb3": plain._asdict(), "compressed": compressed._asdict()},
        "overhead": comparison.overhead()._asdict(),
        "overhead_quartiles": [quartile._asdict() for quartile in comparison.quartiles()],
        "seconds": {
            "sb3": [cost._asdict() for cost in comparison.plain],
            "compressed": [cost._asdict() for cost in comparison.compressed],
        },
    }


def make_model(algorithm: str, game: str, codec: str | None) -> BaseAlgorithm:
    """A model with fresh environments. The same arguments give the same model.

    :param algorithm: ``"PPO"`` or ``"DQN"``
    :param game: the name of a game, such as ``"Pong"``
    :param codec: codec of the compressed buffer; ``None`` for Stable-Baselines3's buffer
    """
    kwargs = {"compression_method": codec}
    settings: dict[str, Any]
    if algorithm == "PPO":
        # The settings of Stable-Baselines3's zoo for Atari.
        settings = {"n_steps": 128, "n_epochs": 4, "batch_size": 256, "learning_rate": 2.5e-4, "clip_range": 0.1}
        if codec is not None:
            settings |= {"rollout_buffer_class": CompressedRolloutBuffer, "rollout_buffer_kwargs": kwargs}
        return PPO("CnnPolicy", _environments(game, 8), ent_coef=0.01, seed=_SEED, device="cpu", **settings)
    settings = {"buffer_size": _DQN_BUFFER, "learning_starts": WARM_UP["DQN"] - 100, "exploration_fraction": 0.1}
    if codec is not None:
        settings |= {"replay_buffer_class": CompressedReplayBuffer, "replay_buffer_kwargs": kwargs}
    return DQN("CnnPolicy", _environments(game, 1), seed=_SEED, device="cpu", **settings)


def _environments(game: str, count: int) -> VecEnv:
    # As in the NoFrameskip-v4 environments: the wrappers skip frames, and actions are never repeated at random.
    emulator = {"frameskip": 1, "repeat_action_probability": 0.0}
    with ale_games("make_model", game):
        games = make_atari_env(f"ALE/{game}-v5", count, seed=_SEED, env_kwargs=emulator)
    return VecTransposeImage(VecFrameStack(games, STACK))


class Cost(NamedTuple):
    """Seconds for one piece of training. On a busy machine, CPU time is steadier than wall time."""

    wall: float
    cpu: float


@dataclass(frozen=True)
class Comparison:
    """Two models that differ only in the buffer.

    :param algorithm: ``"PPO"`` or ``"DQN"``
    :param piece: steps of one piece of training
    :param plain: costs with Stable-Baselines3's buffer, in order of measurement
    :param compressed: costs with ours; each was measured next to its counterpart
    """

    algorithm: str
    piece: int
    plain: tuple[Cost, ...]
    compressed: tuple[Cost, ...]

    def medians(self) -> tuple[Cost, Cost]:
        """Median cost of a piece with Stable-Baselines3's buffer, and with ours."""
        first, second = (Cost(*map(median, zip(*costs))) for costs in (self.plain, self.compressed))
        return first, second

    def overhead(self) -> Cost:
        """Relative overhead of ours; the median over all pairs."""
        wall, cpu = (median(self._overheads(clock)) for clock in (0, 1))
        return Cost(wall, cpu)

    def quartiles(self) -> tuple[Cost, Cost]:
        """First and third quartile of the overhead: how noisy the machine was."""
        (low_wall, _, high_wall), (low_cpu, _, high_cpu) = (
            quantiles(self._overheads(clock), n=4, method="inclusive") for clock in (0, 1)
        )
        return Cost(low_wall, low_cpu), Cost(high_wall, high_cpu)

    def _overheads(self, clock: int) -> list[float]:
        return [ours[clock] / theirs[clock] - 1 for theirs, ours in zip(self.plain, self.compressed)]


class DifferentPoliciesError(AssertionError):
    """The buffers did not return the same batches, so their costs cannot be compared."""


def compare_training(algorithm: str, game: str, codec: str, rounds: int, report: Callable[[int], None]) -> Comparison:
    """Train two models alternately with the same random numbers, and check that their weights are equal.

    :param algorithm: ``"PPO"`` or ``"DQN"``
    :param game: the name of a game
    :param codec: of the compressed buffer
    :param rounds: pieces per model, at least 2
    :param report: called with the number of finished rounds
    """
    plain, compressed = (make_model(algorithm, game, choice) for choice in (None, codec))
    for model in (plain, compressed):
        _learn(model, WARM_UP[algorithm], seed=0)
    costs: dict[BaseAlgorithm, list[Cost]] = {plain: [], compressed: []}
    for index in range(rounds):
        # The first finds the caches as the other left them, so the order alternates.
        for model in (plain, compressed) if index % 2 == 0 else (compressed, plain):
            costs[model].append(_learn(model, PIECE[algorithm], seed=index + 1))
        report(index + 1)
    weights = zip(plain.policy.parameters(), compressed.policy.parameters())
    if not all(th.equal(one, other) for one, other in weights):
        raise DifferentPoliciesError(f"{algorithm} with {codec} did not end with the weights of its counterpart")
    return Comparison(algorithm, PIECE[algorithm], tuple(costs[plain]), tuple(costs[compressed]))


def _learn(model: BaseAlgorithm, steps: int, seed: int) -> Cost:
    # Models share the global random generators. Seeded here, both draw the same numbers.
    set_random_seed(seed)
    wall, cpu = perf_counter(), process_time()
    model.learn(steps, reset_num_timesteps=False)
    return Cost(perf_counter() - wall, process_time() - cpu)


if __name__ == "__main__":
    main()
