"""The evaluations of memory: options, the recorded game, one process per buffer, and tables."""

from __future__ import annotations

import argparse
import csv
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.progress import Progress
from rich.table import Table
from stable_baselines3 import DQN
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from benchmarks._lib.atari import STACK
from benchmarks._lib.buffers import SB3
from benchmarks._lib.console import counted, made_folder, positive, progress_bar, table_console
from benchmarks._lib.game_recording import Player, Recording, is_recorded, record
from benchmarks._lib.machine import machine_info
from examples._lib.contenders import chosen
from sb3_extra_buffers.errors import ExtraBuffersError
from sb3_extra_buffers.training_utils.atari import make_env

ENVIRONMENTS = 4
_LIBRARIES = ("numpy", "zstandard", "lz4", "isal", "numba")
_SIZE, _QUICK_SIZE = 40_000, 1_000
#: Added steps per step that a buffer holds: 12,475 for 10,000, as in the published table.
_STEPS_PER_ROW = 1.2475

T = TypeVar("T")


@dataclass(frozen=True)
class Evaluation(Generic[T]):
    """Results of an evaluation.

    :param results: results, Stable-Baselines3's buffer first
    :param missing: names that are not installed
    :param problems: errors by name
    """

    results: list[T]
    missing: list[str]
    problems: dict[str, str]


def evaluation_parser(script: str, description: str, limit: int, epilog: str) -> argparse.ArgumentParser:
    """The options of both evaluations.

    :param script: path of the script
    :param description: shown by ``--help``
    :param limit: default of ``--limit``
    :param epilog: arguments of the example
    """
    command = f"python {script}"
    parser = argparse.ArgumentParser(prog=command, description=description, epilog=f"example: {command} {epilog}")
    parser.add_argument("--game", default="MsPacman", help="name of an ALE game (default: %(default)s)")
    names = (
        "such as zstd-5, lz4-block/1 or frames/memory (default: those of the published table, and frames); a name or "
        "SB3 with the suffix +timeouts uses the defaults of Stable-Baselines3 instead of optimize_memory_usage"
    )
    parser.add_argument("--codecs", nargs="+", metavar="CODEC", help=names)
    size = f"size of the buffers in transitions (default: {_SIZE:,}, with --quick {_QUICK_SIZE:,})"
    parser.add_argument("--size", type=positive, help=size)
    seconds = "CPU time to fill a buffer; the rest is extrapolated and marked (default: {})"
    parser.add_argument("--limit", type=positive, default=limit, metavar="SECONDS", help=seconds.format(limit))
    parser.add_argument("--model", type=Path, metavar="FILE", help="a saved DQN that plays (default: random actions)")
    parser.add_argument("--seed", type=positive, default=1, help="seed of the games and of the player (default: 1)")
    recording = "folder of the recorded game: written, or used instead of playing if it exists"
    parser.add_argument("--recording", type=made_folder, metavar="FOLDER", help=recording)
    folder = "folder for CSV, Markdown and picture (default: %(default)s)"
    parser.add_argument("--out", type=made_folder, metavar="FOLDER", default="memory-evaluation", help=folder)
    parser.add_argument(
        "--quick", action="store_true", help="a short run of a minute or two: few codecs, few transitions"
    )
    return parser


def parsed(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse and validate the options."""
    options = parser.parse_args(arguments)
    options.size = options.size or (_QUICK_SIZE if options.quick else _SIZE)
    if options.size % ENVIRONMENTS or options.size < 64 * ENVIRONMENTS:
        parser.error(
            f"--size {options.size}: it must be a multiple of {ENVIRONMENTS}, and at least {64 * ENVIRONMENTS}"
        )
    options.steps = int(options.size // ENVIRONMENTS * _STEPS_PER_ROW)
    if options.model is not None and not options.model.is_file():
        parser.error(f"--model {options.model}: there is no such file")
    return options


def evaluate(
    options: argparse.Namespace, measure: Callable[[str, str], T], keep: Callable[[list[T]], None]
) -> Evaluation[T]:
    """Record a game, then measure one buffer after the other.

    :param options: of the command line
    :param measure: called with the folder of the recording and a name
    :param keep: called with all results so far after each result
    """
    try:
        names, missing = chosen(options.codecs, options.quick)
        results: list[T] = []
        problems = {}
        with TemporaryDirectory() as temporary, progress_bar() as progress:
            folder = str(options.recording or temporary)
            _record(folder, options, progress)
            task = progress.add_task("", total=len(names) + 1)
            for name in (SB3, *names):
                progress.update(task, description=f"Measuring {name}", refresh=True)
                try:
                    results.append(measure(folder, name))
                    keep(results)
                except Exception as error:  # the others are still measured
                    problems[name] = f"{type(error).__name__}: {error}"
                progress.update(task, advance=1, refresh=True)
    except ExtraBuffersError as error:
        sys.exit(f"error: {error}")
    return Evaluation(results, missing, problems)


def _record(folder: str, options: argparse.Namespace, progress: Progress) -> None:
    if is_recorded(folder):
        found = Recording(folder)
        if (found.steps, found.n_envs) != (options.steps, ENVIRONMENTS):
            sys.exit(f"error: --recording {folder} has {found.steps} steps, but this takes {options.steps}")
        return
    env = make_env(f"{options.game}NoFrameskip-v4", ENVIRONMENTS, DummyVecEnv, STACK, options.seed)
    try:
        with counted(progress, f"Playing {options.game}", options.steps) as report:
            record(folder, env, options.steps, _player(options, env), report)
    finally:
        env.close()


def _player(options: argparse.Namespace, env: VecEnv) -> Player:
    if options.model is None:
        env.action_space.seed(options.seed)
        return lambda observations: np.array([env.action_space.sample() for _ in observations])
    model = DQN.load(options.model, device="cpu", custom_objects={"buffer_size": 1})
    model.set_random_seed(options.seed)

    def play(observations: NDArray[np.uint8]) -> NDArray[np.int64]:
        actions, _ = model.predict(observations, deterministic=False)
        return actions

    return play


@dataclass(frozen=True)
class Figures:
    """A table of texts: the first column has names, the others numbers."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]

    def for_console(self, title: str) -> Table:
        """As a table for the console.

        :param title: title of the table
        """
        table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
        for number, heading in enumerate(self.headings):
            table.add_column(heading, justify="right" if number else "left", no_wrap=True)
        for row in self.rows:
            table.add_row(*row)
        return table

    def as_markdown(self) -> str:
        """As a Markdown table."""
        lines = [self.headings, ["---", *["---:"] * (len(self.headings) - 1)]]
        lines += [[f"`{name}`", *numbers] for name, *numbers in self.rows]
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def number(value: float, is_measured: bool) -> str:
    """Three digits, and a sign before extrapolated values.

    :param value: the value
    :param is_measured: whether it was measured, not extrapolated
    """
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 0.1 else 3
    return f"{'' if is_measured else '≈ '}{value:,.{digits}f}"


def share(part: float, whole: float, is_measured: bool) -> str:
    """A percentage.

    :param part: the part
    :param whole: the whole
    :param is_measured: whether both were measured, not extrapolated
    """
    return f"{'' if is_measured else '≈ '}{part / whole:.{1 if part > 0.01 * whole else 2}%}"


def provenance(script: str, arguments: Sequence[str] | None) -> str:
    """Command, date and machine of a measurement, in one paragraph.

    :param script: path of the script
    :param arguments: of the command line
    """
    machine = machine_info()
    versions = [f"{name} {machine['libraries'][name]}" for name in _LIBRARIES if name in machine["libraries"]]
    command = shlex.join(["python", script, *(sys.argv[1:] if arguments is None else arguments)])
    processors = f"{machine['processor']}, {machine['usable_cpus']} processors"
    date = f"{datetime.now(timezone.utc):%Y-%m-%d}"
    return f"Measured on {date} by `{command}`; {processors}, Python {machine['python']}, {', '.join(versions)}.\n"


def write_csv(file: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write all figures, unrounded.

    :param file: the CSV file
    :param rows: figures with the same keys
    """
    with file.open("w", newline="", encoding="utf-8") as lines:
        writer = csv.DictWriter(lines, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def finish(
    script: str,
    arguments: Sequence[str] | None,
    csv_file: Path,
    title: str,
    evaluation: Evaluation[Any],
    figures: Figures,
    note: str,
) -> None:
    """Print the table and notes, and write them as Markdown beside the CSV.

    :param script: path of the script
    :param arguments: of the command line
    :param csv_file: the CSV file that was written
    :param title: title of the table
    :param evaluation: the results
    :param figures: the results as a table
    :param note: meaning of the columns
    """
    notes = [note]
    parts = [
        f"{result.name} {result.filling.steps / result.filling.planned:.0%}"
        for result in evaluation.results
        if not result.filling.is_complete
    ]
    if parts:
        notes.append(f"≈: extrapolated, because the time limit ended adding early: {', '.join(parts)} were added.")
    if evaluation.missing:
        notes.append(f"Skipped, not installed: {', '.join(evaluation.missing)}.")
    notes += [f"{name} failed: {problem}" for name, problem in evaluation.problems.items()]
    console = table_console()
    console.print(figures.for_console(title))
    console.print("\n".join(notes), highlight=False, markup=False)
    document = [f"{title}.", figures.as_markdown(), *notes, provenance(script, arguments)]
    csv_file.with_suffix(".md").write_text("\n\n".join(part.strip() for part in document) + "\n", encoding="utf-8")
    console.print(f"Written: {csv_file.parent}", highlight=False, markup=False, soft_wrap=True)
