"""Options, tables and progress bars that several scripts share."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

_WIDTH_OF_A_PIPE = 150


def table_console() -> Console:
    """A console on stdout that is wide enough for tables if stdout is a file or a pipe."""
    console = Console()
    return console if console.is_terminal else Console(width=_WIDTH_OF_A_PIPE)


def progress_bar() -> Progress:
    """A transient progress bar on stderr, disabled if stderr is not a terminal.

    It is only redrawn on request: a drawing thread would disturb the timings.
    """
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True, auto_refresh=False, disable=not console.is_terminal)


@contextmanager
def counted(progress: Progress, label: str, total: int) -> Iterator[Callable[[int], None]]:
    """A line in the bar while the block runs. The block is given a function to call with the progress."""
    task = progress.add_task(label, total=total)
    yield lambda done: progress.update(task, completed=done, refresh=True)
    progress.remove_task(task)


def positive(text: str) -> int:
    """``type`` of an option: an integer of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--json FILE`` for all figures and the machine."""
    purpose = "also write all figures and the machine to FILE"
    parser.add_argument("--json", type=_in_a_folder, metavar="FILE", help=purpose)


def made_folder(text: str) -> Path:
    """``type`` of an option: a folder, made if it does not exist."""
    folder = Path(text)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{folder} cannot be made ({error.strerror})") from error
    return folder


def _in_a_folder(text: str) -> Path:
    file = Path(text)
    if not file.parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {file.parent}")
    return file
