"""Where tables go: to a terminal with colours, to a pipe without them and without losing a column."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

_WIDTH_OF_A_PIPE = 160


def console() -> Console:
    """A console on stdout. Brackets are what they are: «[zstd]» is an extra, no colour."""
    found = Console(highlight=False, markup=False)
    return found if found.is_terminal else Console(width=_WIDTH_OF_A_PIPE, highlight=False, markup=False)


def table(title: str, columns: Iterable[str], right: Iterable[str] = ()) -> Table:
    """An empty table.

    :param title: above it
    :param columns: their headings
    :param right: which of them hold numbers
    """
    made = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    numbers = set(right)
    for name in columns:
        made.add_column(name, justify="right" if name in numbers else "left", no_wrap=name in numbers, overflow="fold")
    return made


def print_json(content: Any) -> None:
    """Print what another program reads."""
    print(json.dumps(content, indent=2))
