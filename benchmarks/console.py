"""Where tables and progress bars go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

_WIDTH_OF_A_PIPE = 150


def table_console() -> Console:
    """A console on stdout that keeps every column when it writes to a file or a pipe, where rich assumes 80."""
    console = Console()
    return console if console.is_terminal else Console(width=_WIDTH_OF_A_PIPE)


def progress_bar() -> Progress:
    """A bar on stderr that vanishes when done. There is none if stderr is not a terminal.

    It is drawn only when told to: a thread that draws on its own would show in the timings.
    """
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True, auto_refresh=False, disable=not console.is_terminal)


@contextmanager
def counted(progress: Progress, label: str, total: int) -> Iterator[Callable[[int], None]]:
    """A line in the bar while the block runs; what the block receives is to be called with how much is done."""
    task = progress.add_task(label, total=total)
    yield lambda done: progress.update(task, completed=done, refresh=True)
    progress.remove_task(task)
