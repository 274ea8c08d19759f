"""Agents learn the same with compressed buffers and with Stable-Baselines3's."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

if not __package__:  # run as a file: import from the root of the checkout
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples._lib.packages import required_packages

with required_packages():
    from benchmarks._lib.console import add_json_option, positive, table_console
    from benchmarks._lib.machine import machine_info
    from benchmarks._lib.plotting import check_plot_option
    from examples._lib.learning import TASKS, Curve, Pair, learn_in_pairs, verdict
    from examples._lib.training import errors_in_one_line


def main(arguments: Sequence[str] | None = None) -> None:
    """Train with both kinds of buffers, compare the curves, and draw them."""
    options = _options(arguments)
    pairs = _known(options)
    with errors_in_one_line():
        for task in options.tasks:
            for pair in learn_in_pairs(task, options.seeds, _steps(options, task), options):
                pairs[task, pair.compressed.seed] = pair
    verdicts = [verdict(pair) for pair in pairs.values()]
    for found in verdicts:
        table_console().print(str(found), highlight=False, soft_wrap=True)
    if options.json is not None:
        content = {
            "machine": machine_info(),
            "verdicts": [found.as_json() for found in verdicts],
            "curves": [curve.as_json() for pair in pairs.values() for curve in pair],
        }
        options.json.write_text(json.dumps(content) + "\n", encoding="utf-8")
    if options.plot is not None:
        from examples._lib.training_plots import draw_curves

        draw_curves(list(pairs.values()), options.plot)
    sys.exit(0 if all(found.identical for found in verdicts) else 1)


def _known(options: argparse.Namespace) -> dict[tuple[str, int], Pair]:
    """Pairs of the file of ``--add-to``, by task and seed. New pairs replace them."""
    if options.add_to is None:
        return {}
    curves = [Curve.from_json(curve) for curve in json.loads(options.add_to.read_text(encoding="utf-8"))["curves"]]
    pairs = map(Pair, curves[::2], curves[1::2])
    return {(pair.compressed.task, pair.compressed.seed): pair for pair in pairs}


def _steps(options: argparse.Namespace, task: str) -> int:
    return int(options.steps or (TASKS[task].quick if options.quick else TASKS[task].steps))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python examples/example_learning_curves.py",
        description="Train PPO on Pong and DQN on Catch, each with a compressed buffer and with Stable-Baselines3's, "
        "with the same seeds. The curves are expected to be identical; the exit status is 1 if they are not.",
        epilog="example: python examples/example_learning_curves.py --tasks catch --seeds 1 2 --plot catch.svg",
    )
    tasks = "tasks to train; none, to draw the curves of --add-to (default: all)"
    parser.add_argument("--tasks", nargs="*", choices=list(TASKS), default=list(TASKS), help=tasks)
    steps = ", ".join(f"{name} {task.steps:,}" for name, task in TASKS.items())
    parser.add_argument("--steps", type=positive, help=f"length of the training (default: {steps})")
    minutes = "stop a training after so many minutes; the steps that both have done are compared"
    parser.add_argument("--minutes", type=positive, help=minutes)
    parser.add_argument(
        "--seeds", nargs="+", type=positive, default=[1], help="one pair of trainings per seed (default: 1)"
    )
    jobs = "trainings at the same time, one core each (default: %(default)s)"
    parser.add_argument("--jobs", type=positive, default=2, help=jobs)
    parser.add_argument("--quick", action="store_true", help="a short run of a minute; too short to learn Pong")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the curves as .svg or .png")
    add_json_option(parser)
    known = "JSON of earlier trainings, written and drawn together with the new ones"
    parser.add_argument("--add-to", type=Path, metavar="FILE", help=known)
    options = parser.parse_args(arguments)
    if options.plot is not None:
        check_plot_option(parser, options.plot)
    if options.add_to is not None and not options.add_to.is_file():
        parser.error(f"--add-to {options.add_to}: there is no such file")
    return options


if __name__ == "__main__":
    main()
