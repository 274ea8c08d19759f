"""Figures as a table on the console, as Markdown and as CSV."""

from __future__ import annotations

import csv
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from benchmarks.console import table_console
from benchmarks.machine import machine_info
from examples.eval_run import Evaluation

_LIBRARIES = ("numpy", "zstandard", "lz4", "isal", "numba")


@dataclass(frozen=True)
class Figures:
    """A table of texts: the first column names a buffer, all others are numbers."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]

    def for_console(self, title: str) -> Table:
        """As the console draws it.

        :param title: above it
        """
        table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
        for number, heading in enumerate(self.headings):
            table.add_column(heading, justify="right" if number else "left", no_wrap=True)
        for row in self.rows:
            table.add_row(*row)
        return table

    def as_markdown(self) -> str:
        """As a document shows it."""
        lines = [self.headings, ["---", *["---:"] * (len(self.headings) - 1)]]
        lines += [[f"`{name}`", *numbers] for name, *numbers in self.rows]
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def number(value: float, is_measured: bool) -> str:
    """Three digits, and a sign before what was extrapolated.

    :param value: the figure
    :param is_measured: whether it is one
    """
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 0.1 else 3
    return f"{'' if is_measured else '≈ '}{value:,.{digits}f}"


def share(part: float, whole: float, is_measured: bool) -> str:
    """A percentage.

    :param part: of what
    :param whole: all of it
    :param is_measured: whether that is so of both
    """
    return f"{'' if is_measured else '≈ '}{part / whole:.{1 if part > 0.01 * whole else 2}%}"


def provenance(module: str, arguments: Sequence[str] | None) -> str:
    """How to measure it again, when it was measured, and on what, in one paragraph.

    :param module: that measured
    :param arguments: what it was given
    """
    machine = machine_info()
    versions = [f"{name} {machine['libraries'][name]}" for name in _LIBRARIES if name in machine["libraries"]]
    command = shlex.join(["python", "-m", module, *(sys.argv[1:] if arguments is None else arguments)])
    processors = f"{machine['processor']}, {machine['usable_cpus']} processors"
    date = f"{datetime.now(timezone.utc):%Y-%m-%d}"
    return f"Measured on {date} by `{command}`; {processors}, Python {machine['python']}, {', '.join(versions)}.\n"


def write_csv(file: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """All figures, unrounded.

    :param file: where to
    :param rows: with the same keys
    """
    with file.open("w", newline="", encoding="utf-8") as lines:
        writer = csv.DictWriter(lines, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def finish(
    module: str,
    arguments: Sequence[str] | None,
    csv_file: Path,
    title: str,
    evaluation: Evaluation[Any],
    figures: Figures,
    note: str,
) -> None:
    """Print the table, write it as Markdown beside the CSV, and say what is missing.

    :param module: that measured
    :param arguments: what it was given
    :param csv_file: that was written
    :param title: what was measured
    :param evaluation: what came of it
    :param figures: the same as a table
    :param note: what the columns mean
    """
    notes = [note]
    parts = [
        f"{result.name} {result.filling.steps / result.filling.planned:.0%}"
        for result in evaluation.results
        if not result.filling.is_complete
    ]
    if parts:
        notes.append(f"≈ is extrapolated from what was added before the time was up: {', '.join(parts)} of it.")
    if evaluation.missing:
        notes.append(f"Skipped, because not installed: {', '.join(evaluation.missing)}.")
    notes += [f"{name} failed: {problem}" for name, problem in evaluation.problems.items()]
    console = table_console()
    console.print(figures.for_console(title))
    console.print("\n".join(notes), highlight=False, markup=False)
    document = [f"{title}.", figures.as_markdown(), *notes, provenance(module, arguments)]
    csv_file.with_suffix(".md").write_text("\n\n".join(part.strip() for part in document) + "\n", encoding="utf-8")
    console.print(f"Written: {csv_file.parent}", highlight=False, markup=False, soft_wrap=True)
