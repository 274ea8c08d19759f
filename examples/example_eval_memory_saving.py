"""Memory and time of replay buffers by codec and level, on an Atari game."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

if not __package__:  # run as a file: import from the root of the checkout
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples._lib.packages import required_packages

with required_packages():
    from benchmarks._lib.measure import measure_in_child
    from examples._lib.contenders import BATCH_SIZES, Saving, measure_saving
    from examples._lib.evaluation import (
        ENVIRONMENTS,
        Evaluation,
        Figures,
        evaluate,
        evaluation_parser,
        finish,
        number,
        parsed,
        share,
        write_csv,
    )

_SCRIPT = "examples/example_eval_memory_saving.py"
_LIMIT = 30
_NOTE = (
    "Memory: growth of the process, without libraries. Times: CPU time of all threads, to add everything, and the "
    "median of a batch. Up to 8,192 observations of each buffer were compared bit by bit. Memory is not extrapolated "
    "where less than a tenth was added."
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Record a game, fill one buffer after the other with it, print and write the figures."""
    parser = evaluation_parser(
        _SCRIPT,
        "Fill replay buffers with the same transitions of an Atari game, each in its own process, and measure memory, "
        "add and sample: for every codec and level, the frame layouts, and Stable-Baselines3's buffer.",
        _LIMIT,
        "--game Pong --codecs zstd-5 zstd3 frames/memory --size 20000",
    )
    options = parsed(parser, arguments)
    rounds = 25 if options.quick else 100

    def measure(folder: str, name: str) -> Saving:
        return measure_in_child(measure_saving, folder, name, options.size, options.limit, rounds)

    csv = options.out / "memory-saving.csv"
    evaluation = evaluate(options, measure, lambda results: write_csv(csv, [_unrounded(result) for result in results]))
    finish(_SCRIPT, arguments, csv, _title(options), evaluation, _figures(evaluation), _NOTE)
    _plot(options, evaluation)
    sys.exit(1 if evaluation.problems else 0)


def _title(options: argparse.Namespace) -> str:
    added = options.steps * ENVIRONMENTS
    player = "random play" if options.model is None else options.model.name
    return f"{added:,} transitions of {options.game} ({player}) into replay buffers of {options.size:,}"


def _figures(evaluation: Evaluation[Saving]) -> Figures:
    plain, *others = evaluation.results
    rows, whole = [], plain.full_resident
    for result in (plain, *sorted(others, key=lambda result: result.full_cpu)):
        done, full = result.filling.is_complete, result.full_resident
        size = "-" if full is None else number(full / 1e6, done)
        part = "-" if full is None or whole is None else share(full, whole, done)
        samples = (number(result.sample[batch_size].cpu * 1e3, True) for batch_size in BATCH_SIZES)
        rows.append((result.name, size, part, number(result.full_cpu, done), *samples))
    batches = (f"sample({batch_size}), ms" for batch_size in BATCH_SIZES)
    return Figures(("buffer", "memory, MB", "of SB3's", "add, s", *batches), rows)


def _unrounded(result: Saving) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "buffer": result.name,
        "transitions_added": result.filling.steps * ENVIRONMENTS,
        "transitions_planned": result.filling.planned * ENVIRONMENTS,
        "resident_bytes": result.resident,
        "growth_bytes": result.filling.growth,
        "add_seconds": result.filling.time.wall,
        "add_cpu_seconds": result.filling.time.cpu,
    }
    for batch_size, time in result.sample.items():
        figures |= {f"sample_{batch_size}_seconds": time.wall, f"sample_{batch_size}_cpu_seconds": time.cpu}
    return figures


def _plot(options: argparse.Namespace, evaluation: Evaluation[Saving]) -> None:
    from examples._lib.memory_plots import Point, plot_points

    labels = f"sample({BATCH_SIZES[0]}): milliseconds of the processor", "resident memory, MB"
    points = [
        Point(result.name, result.sample[BATCH_SIZES[0]].cpu * 1e3, result.full_resident / 1e6)
        for result in evaluation.results
        if result.full_resident is not None
    ]
    title = f"{options.size:,} transitions of {options.game}: memory, and the time to read a batch"
    plot_points(options.out / "memory-saving.svg", title, labels, points)


if __name__ == "__main__":
    main()
