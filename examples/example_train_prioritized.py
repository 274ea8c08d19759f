"""Prioritized replay learns with fewer updates: the blind cliffwalk, and DQN on a game of images."""

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
    import numpy as np

    from benchmarks._lib.console import add_json_option, counted, positive, progress_bar, table_console
    from benchmarks._lib.machine import machine_info
    from benchmarks._lib.plotting import check_plot_option
    from examples._lib.prioritized import REPLAYS, Curve, Walk, as_json, catch, cliffwalk, from_json
    from examples._lib.training import errors_in_one_line

_TASKS = ("cliffwalk", "catch")
_STATES = (2, 4, 6, 8, 10)
_QUICK_STATES = (2, 4)
_STEPS = 12_000
_QUICK_STEPS = 1_400
#: Episodes whose mean return is printed.
_LAST = 20


def main(arguments: Sequence[str] | None = None) -> None:
    """Train with uniform and with prioritized replay, print the results, and draw them."""
    options = _options(arguments)
    walks, curves = _known(options)
    with errors_in_one_line(), progress_bar() as progress:
        if "cliffwalk" in options.tasks:
            walks += [
                cliffwalk(replay, states, seed)
                for states in options.states
                for seed in options.seeds
                for replay in REPLAYS
            ]
        if "catch" in options.tasks:
            for seed in options.seeds:
                for replay in REPLAYS:
                    with counted(progress, f"Catch, {replay}, seed {seed}", options.steps) as report:
                        curves.append(catch(replay, seed, options.steps, report))
    _show(walks, curves)
    if options.json is not None:
        content = {"machine": machine_info(), **as_json(walks, curves)}
        options.json.write_text(json.dumps(content) + "\n", encoding="utf-8")
    if options.plot is not None:
        from examples._lib.prioritized_plots import draw_comparison

        draw_comparison(walks, curves, options.plot)


def _show(walks: list[Walk], curves: list[Curve]) -> None:
    console = table_console()
    for states in sorted({walk.states for walk in walks}):
        medians = {
            replay: np.median([walk.updates for walk in walks if (walk.replay, walk.states) == (replay, states)])
            for replay in REPLAYS
        }
        text = ", ".join(f"{replay} {updates:,.0f}" for replay, updates in medians.items())
        console.print(f"cliffwalk of {states} states, median of updates: {text}", highlight=False)
    for curve in curves:
        mean = np.mean([found for _, found in curve.episodes[-_LAST:]]) if curve.episodes else float("nan")
        console.print(
            f"catch, {curve.replay}, seed {curve.seed}: {mean:.1f} of the last {_LAST} episodes", highlight=False
        )


def _known(options: argparse.Namespace) -> tuple[list[Walk], list[Curve]]:
    """The results in the file of ``--add-to``."""
    if options.add_to is None:
        return [], []
    return from_json(json.loads(options.add_to.read_text(encoding="utf-8")))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python examples/example_train_prioritized.py",
        description="Compare prioritized with uniform replay: the blind cliffwalk, in which one of many transitions "
        "has a reward, and DQN that learns to catch balls from images.",
        epilog="example: python examples/example_train_prioritized.py --tasks cliffwalk --states 2 4 6 --plot walk.svg",
    )
    tasks = "what to learn; none, to draw the results of --add-to (default: both)"
    parser.add_argument("--tasks", nargs="*", choices=_TASKS, default=list(_TASKS), help=tasks)
    states = " ".join(map(str, _STATES))
    parser.add_argument("--states", nargs="+", type=positive, help=f"sizes of the cliffwalk (default: {states})")
    parser.add_argument("--steps", type=positive, help=f"length of a training of Catch (default: {_STEPS:,})")
    parser.add_argument("--seeds", nargs="+", type=positive, help="default: 1 2 3")
    parser.add_argument("--quick", action="store_true", help="a short run of less than a minute, with one seed")
    parser.add_argument("--add-to", type=Path, metavar="FILE", help="add the results to those of an earlier --json")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the results as .svg or .png")
    add_json_option(parser)
    options = parser.parse_args(arguments)
    if options.plot is not None:
        check_plot_option(parser, options.plot)
    options.states = options.states or (_QUICK_STATES if options.quick else _STATES)
    options.steps = options.steps or (_QUICK_STEPS if options.quick else _STEPS)
    options.seeds = options.seeds or ([1] if options.quick else [1, 2, 3])
    return options


if __name__ == "__main__":
    main()
