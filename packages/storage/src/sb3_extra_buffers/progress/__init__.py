"""Progress bars for long work, drawn by rich or tqdm, whichever is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

__all__ = ["Advance", "progress_bar"]

#: Called with the amount of work done since the last call.
Advance = Callable[[int], object]


@contextmanager
def progress_bar(label: str, total: int, wanted: bool = True) -> Iterator[Advance]:
    """Show a bar on stderr while the block runs. Nothing is shown in a pipe, or without rich and tqdm.

    :param label: what is counted
    :param total: amount of work
    :param wanted: whether to show anything
    """
    if wanted and find_spec("rich") is not None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        is_shown = console.is_terminal or console.is_jupyter
        with Progress(*columns, console=console, transient=True, disable=not is_shown) as bar:
            task = bar.add_task(label, total=total)
            yield lambda done: bar.advance(task, done)
    elif wanted and find_spec("tqdm") is not None:
        from tqdm.auto import tqdm

        # disable=None: shown on terminals only.
        with tqdm(desc=label, total=total, leave=False, disable=None) as counter:
            yield counter.update
    else:
        yield lambda _: None
