"""Is a changed source tree slower or larger than another one? See ``python -m benchmarks.trees --help``.

Each tree runs in its own interpreter, in a worker process that holds full buffers. The workers are asked in turn, in
alternating order, for the same work on the same Atari frames. A ratio is the median over the pairs of neighbours, so
that a slow moment of the machine counts for both sides. Both trees must return the same batches.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from rich import box
from rich.table import Table

from benchmarks._lib.atari import stacked_frames
from benchmarks._lib.console import add_json_option, counted, positive, progress_bar, table_console
from benchmarks._lib.machine import machine_info
from benchmarks._lib.measure import WrongBytesError
from sb3_extra_buffers.errors import ExtraBuffersError

_WORKER = Path(__file__).with_name("_lib") / "tree_worker.py"
_START = f"import runpy; runpy.run_path({str(_WORKER)!r}, run_name='__main__')"
_SIDES = ("old", "new")
_OPERATIONS = ("add", "sample(32)", "sample(256)", "get")
#: glibc adapts these thresholds to the history of a process, which makes one process faster than its twin.
_MALLOC = {"MALLOC_MMAP_THRESHOLD_": str(1 << 25), "MALLOC_TRIM_THRESHOLD_": str(1 << 30)}
_MEMORY = {"reported": "memory, reported", "resident": "memory, RSS growth"}
_NOTE = (
    "Ratios are new/old, medians over pairs; quartiles in brackets. Times are per transition (add), batch (sample) and "
    "minibatch of 256 (get).\nreported: payloads and overhead of memory_report(). RSS growth: of the worker process."
)


@dataclass(frozen=True)
class Case:
    """A kind of observations and of buffers.

    :param n_envs: number of environments
    :param is_dict: a Dict of the image and a vector instead of the image
    :param options: arguments of the buffers
    """

    n_envs: int
    is_dict: bool = False
    options: dict[str, Any] = field(default_factory=dict)


CASES = {
    "atari-1": Case(1),
    "atari": Case(8),
    "dict": Case(8, is_dict=True),
    "cells": Case(8, options={"layout": "cells"}),
}


class Tree:
    """A worker process of one source tree.

    :param side: ``"old"`` or ``"new"``
    :param folder: root of the checkout
    :param python: interpreter in which the tree is installed
    """

    def __init__(self, side: str, folder: Path, python: Path) -> None:
        self._side = side
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | _MALLOC
        self._process = subprocess.Popen(
            [str(python), "-c", _START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            cwd=folder,
            env=environment,
        )
        package = Path(self._answer()["package"])
        if not package.is_relative_to(folder.resolve()):
            self.close()
            sys.exit(f"error: {python} imports {package}, which is not in --{side} {folder}. Install that tree there.")

    def ask(self, request: Any) -> dict[str, Any]:
        """Send a request and wait for the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"error: the worker of --{self._side} ended with status {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer


@dataclass(frozen=True)
class Comparison:
    """One figure of both trees.

    :param case: name of the case
    :param what: operation or memory
    :param unit: ``"s"`` or ``"B"``
    :param values: by side, one value per round; neighbours have the same index
    """

    case: str
    what: str
    unit: str
    values: dict[str, list[float]]

    @property
    def ratios(self) -> list[float]:
        """New divided by old, for each pair."""
        return [new / old if old else 1.0 for old, new in zip(self.values["old"], self.values["new"])]

    @property
    def ratio(self) -> float:
        """Median over the pairs."""
        return median(self.ratios)

    def spread(self) -> tuple[float, float]:
        """First and third quartile of the ratio."""
        if len(self.ratios) < 2:
            return self.ratio, self.ratio
        low, _, high = quantiles(self.ratios, n=4, method="inclusive")
        return low, high

    def as_json(self) -> dict[str, Any]:
        """All figures."""
        medians = {side: median(values) for side, values in self.values.items()}
        names = {"case": self.case, "what": self.what, "unit": self.unit}
        return {**names, "ratio": self.ratio, "quartiles": self.spread(), "medians": medians, "values": self.values}


def main(arguments: Sequence[str] | None = None) -> None:
    """Record frames, measure all cases, and print a table of ratios."""
    options = _options(arguments)
    console = table_console()
    found: list[Comparison] = []
    with TemporaryDirectory() as folder, progress_bar() as progress:
        try:
            with counted(progress, f"Playing {options.game}", options.frames) as report:
                played = stacked_frames(options.game, options.frames, progress=report)
        except ExtraBuffersError as error:
            sys.exit(f"error: {error}")
        observations = np.ascontiguousarray(played.transpose(0, 3, 1, 2))
        np.save(Path(folder, "observations.npy"), observations)
        # After a reset, the older frames of the stack are zero.
        np.save(Path(folder, "first.npy"), ~observations[:, :-1].any(axis=(1, 2, 3)))
        del played, observations
        for name in options.cases:
            with counted(progress, name, options.processes * options.rounds) as report:
                found += compare(name, folder, options, report)
    console.print(table(f"{options.game}, {options.transitions:,} transitions", found))
    console.print(_NOTE, highlight=False, markup=False)
    if options.json is not None:
        settings = {name: getattr(options, name) for name in ("game", "frames", "transitions", "rounds", "processes")}
        content = {"machine": machine_info(), "settings": settings, "figures": [one.as_json() for one in found]}
        options.json.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    slower = [f"{one.case} {one.what} {one.ratio:.3f}" for one in found if options.limit and one.ratio > options.limit]
    if slower:
        sys.exit(f"above --limit {options.limit:g}: {', '.join(slower)}")


def compare(name: str, folder: str, options: argparse.Namespace, report: Any) -> list[Comparison]:
    """Measure one case in several pairs of processes, one pair after the other.

    :param name: of the case
    :param folder: has the observations
    :param options: of the command line
    :param report: called with the number of finished rounds
    """
    case = CASES[name]
    setup = {"folder": folder, "n_envs": case.n_envs, "is_dict": case.is_dict, "transitions": options.transitions}
    setup["options"] = {**case.options, **({"threads": options.threads} if options.threads else {})}
    seconds = {
        (operation, clock): Comparison(name, f"{operation}, {clock}", "s", {side: [] for side in _SIDES})
        for operation in _OPERATIONS
        for clock in ("cpu", "wall")
    }
    sizes = {key: Comparison(name, label, "B", {side: [] for side in _SIDES}) for key, label in _MEMORY.items()}
    for number in range(options.processes):
        trees: dict[str, Tree] = {}
        order = list(_SIDES) if number % 2 == 0 else list(_SIDES[::-1])
        try:
            for side in order:
                trees[side] = Tree(side, getattr(options, side), getattr(options, f"{side}_python"))
                for key, nbytes in trees[side].ask(setup).items():
                    sizes[key].values[side].append(nbytes)
            for done in range(options.rounds):
                for operation in _OPERATIONS:
                    order.reverse()
                    for side in order:
                        answer = trees[side].ask(operation)
                        if done:  # the first round warms up
                            for clock, duration in answer.items():
                                seconds[operation, clock].values[side].append(duration)
                order.reverse()  # there is an even number of operations: alternate by round, too
                report(number * options.rounds + done + 1)
            digests = {side: tree.ask("digest")["digest"] for side, tree in trees.items()}
            if digests["old"] != digests["new"]:
                raise WrongBytesError(f"{name}: the trees returned different batches")
        finally:
            for tree in trees.values():
                tree.close()
    return [*seconds.values(), *sizes.values()]


def table(title: str, found: Sequence[Comparison]) -> Table:
    """One row for each figure.

    :param title: title of the table
    :param found: the figures
    """
    shown = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for heading in ("case", "figure", "old", "new", "new/old", "quartiles"):
        shown.add_column(heading, justify="left" if heading in ("case", "figure") else "right", no_wrap=True)
    for number, one in enumerate(found):
        if number and one.case != found[number - 1].case:
            shown.add_section()
        factor, unit = (1e6, "µs") if one.unit == "s" else (1e-6, "MB")
        old, new = (median(one.values[side]) * factor for side in _SIDES)
        low, high = one.spread()
        values = (f"{old:,.1f} {unit}", f"{new:,.1f} {unit}", f"{one.ratio:.3f}", f"[{low:.3f}, {high:.3f}]")
        shown.add_row(one.case, one.what, values[0], values[1], values[2], values[3].replace("[", r"\["))
    return shown


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.trees",
        description="Compare add, sample, rollout get and memory of two source trees, alternating in one run.",
        epilog="example: python -m benchmarks.trees --old ../before --new . --rounds 60 --json trees.json",
    )
    for side in _SIDES:
        parser.add_argument(
            f"--{side}", type=Path, required=True, metavar="FOLDER", help=f"checkout of the {side} tree"
        )
        python = f"interpreter of the {side} tree, in which it is installed (default: .venv/bin/python in its folder)"
        parser.add_argument(f"--{side}-python", type=Path, metavar="FILE", help=python)
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES), help="default: all")
    parser.add_argument("--game", default="MsPacman", help="name of an ALE game (default: %(default)s)")
    parser.add_argument("--frames", type=positive, help="observations to play (default: 6000)")
    parser.add_argument("--transitions", type=positive, help="size of the replay buffers (default: 10000)")
    parser.add_argument("--rounds", type=positive, help="requests of each operation per process (default: 40)")
    parser.add_argument("--processes", type=positive, help="pairs of processes, one after the other (default: 3)")
    parser.add_argument("--threads", type=positive, help="threads that decode (default: chosen by the buffers)")
    parser.add_argument("--limit", type=float, metavar="RATIO", help="exit with status 1 if a ratio is above it")
    quick = "a short run of about a minute: 1 pair of processes, 10 rounds, 2000 transitions; other options still apply"
    parser.add_argument("--quick", action="store_true", help=quick)
    add_json_option(parser)
    options = parser.parse_args(arguments)
    options.frames = options.frames or (1_500 if options.quick else 6_000)
    options.transitions = options.transitions or (2_000 if options.quick else 10_000)
    options.rounds = options.rounds or (10 if options.quick else 40)
    options.processes = options.processes or (1 if options.quick else 3)
    if options.rounds < 2:
        parser.error("--rounds 1: it must be at least 2, because the first round warms up")
    for side in _SIDES:
        folder = getattr(options, side)
        python = getattr(options, f"{side}_python") or folder / ".venv" / "bin" / "python"
        setattr(options, f"{side}_python", python.absolute())
        if not python.exists():
            parser.error(f"--{side}-python {python}: there is no such file")
    return options


if __name__ == "__main__":
    main()
