"""Time to read, save and load replay buffers by codec and level, on an Atari game."""

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
    from examples._lib.contenders import Loading, measure_loading
    from examples._lib.evaluation import (
        ENVIRONMENTS,
        Evaluation,
        Figures,
        evaluate,
        evaluation_parser,
        finish,
        number,
        parsed,
        write_csv,
    )

_SCRIPT = "examples/example_eval_memory_loading.py"
_LIMIT = 20
_NOTE = (
    "Times: CPU time of all threads. read: as many transitions as the buffer holds, in random batches of 256. save and "
    "load: a pickle, as save_replay_buffer and load_replay_buffer write and read it; it is loaded in a new process, "
    "and memory is the growth of that process. Up to 8,192 observations were compared bit by bit."
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Record a game; fill, read, save and load one buffer after the other; print and write the figures."""
    parser = evaluation_parser(
        _SCRIPT,
        "Fill replay buffers with the same transitions of an Atari game, for every codec and level, and measure the "
        "time to read them, to save them and to load them in a new process, and the size of the files.",
        _LIMIT,
        "--game Pong --codecs zstd-5 zstd3 frames/memory --size 20000",
    )
    options = parsed(parser, arguments)

    def measure(folder: str, name: str) -> Loading:
        return measure_loading(folder, name, options.size, options.limit)

    csv = options.out / "memory-loading.csv"
    evaluation = evaluate(options, measure, lambda results: write_csv(csv, [_unrounded(result) for result in results]))
    title = f"Reading, saving and loading replay buffers of {options.size:,} transitions of {options.game}"
    finish(_SCRIPT, arguments, csv, title, evaluation, _figures(evaluation), _NOTE)
    _plot(options, evaluation)
    sys.exit(1 if evaluation.problems else 0)


def _figures(evaluation: Evaluation[Loading]) -> Figures:
    plain, *others = evaluation.results
    rows = []
    for result in (plain, *sorted(others, key=lambda result: result.read.cpu * result.filling.to_all_rows)):
        done, scale = result.filling.is_complete, result.filling.to_all_rows
        figures = (result.read.cpu, result.save.cpu, result.file / 1e6, result.load.cpu, result.resident / 1e6)
        rows.append((result.name, *(number(figure * scale, done) for figure in figures)))
    return Figures(("buffer", "read all, s", "save, s", "file, MB", "load, s", "memory then, MB"), rows)


def _unrounded(result: Loading) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "buffer": result.name,
        "transitions_added": result.filling.steps * ENVIRONMENTS,
        "transitions_planned": result.filling.planned * ENVIRONMENTS,
        "file_bytes": result.file,
        "resident_bytes": result.resident,
    }
    for name, time in (("read", result.read), ("save", result.save), ("load", result.load)):
        figures |= {f"{name}_seconds": time.wall, f"{name}_cpu_seconds": time.cpu}
    return figures


def _plot(options: argparse.Namespace, evaluation: Evaluation[Loading]) -> None:
    from examples._lib.memory_plots import Point, plot_points

    points = []
    for result in evaluation.results:
        scale = result.filling.to_all_rows
        points.append(Point(result.name, result.load.cpu * scale, result.file * scale / 1e6))
    title = f"{options.size:,} transitions of {options.game}: size of the saved buffer, and the time to load it"
    labels = "loading: seconds of the processor", "file, MB"
    plot_points(options.out / "memory-loading.svg", title, labels, points)


if __name__ == "__main__":
    main()
