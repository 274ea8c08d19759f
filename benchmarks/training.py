"""How much longer does training take with compressed buffers? See ``python -m benchmarks.training --help``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

import numpy as np
import stable_baselines3
import torch
from rich import box
from rich.table import Table

from benchmarks.console import counted, progress_bar, table_console
from benchmarks.machine import machine_info
from benchmarks.options import add_json_option, positive
from benchmarks.training_measure import Comparison, compare_training
from sb3_extra_buffers import codecs
from sb3_extra_buffers.errors import ExtraBuffersError

_NOTE = (
    "Medians over {rounds} pieces of training with each buffer, in turn; overhead: over pairs of neighbours.\n"
    "Both models draw the same random numbers, and ended with the same weights, bit by bit.\n"
    "PPO: 8 environments, rollouts of 128 steps, 4 epochs. DQN: 1 environment, an update every 4 steps.\n"
    "torch: {threads}."
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train pairs of models, print what the buffers cost, and write the figures to a file if asked to."""
    options = _options(arguments)
    rounds = options.rounds or (2 if options.quick else 12)
    torch.set_num_threads(options.torch_threads)
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
                "torch": torch.__version__,
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
    parser.add_argument("--algorithms", nargs="+", choices=both, default=both, help="what to train (default: both)")
    parser.add_argument("--game", default="Pong", help="name of an ALE game (default: %(default)s)")
    parser.add_argument("--codec", default="zstd-3", help="of the compressed buffers (default: zstd-3, level -3)")
    parser.add_argument("--rounds", type=positive, help="pieces to train with each buffer (default: 12)")
    threads = "of torch (default: 1, which keeps CPU time comparable)"
    parser.add_argument("--torch-threads", type=positive, default=1, metavar="N", help=threads)
    parser.add_argument("--quick", action="store_true", help="about a minute: 2 rounds, unless --rounds says more")
    add_json_option(parser)
    options = parser.parse_args(arguments)
    if options.rounds == 1:
        parser.error("--rounds 1: it must be at least 2, to see how far they differ")
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


if __name__ == "__main__":
    main()
