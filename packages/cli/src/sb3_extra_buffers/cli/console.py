"""Tables and JSON on stdout, with colours on a terminal only; exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

#: Exit codes besides 0. Something is broken: a plugin, or an unexpected error.
BROKEN = 1
#: The request cannot be carried out; the error says why.
REFUSED = 2
_WIDTH_OF_A_PIPE = 160


def console() -> Console:
    """A console on stdout, wide enough for all columns in a pipe. Brackets such as ``[fast]`` are no markup."""
    found = Console(highlight=False, markup=False)
    return found if found.is_terminal else Console(width=_WIDTH_OF_A_PIPE, highlight=False, markup=False)


def table(title: str, columns: Iterable[str], rows: Iterable[Iterable[str]] = (), right: Iterable[str] = ()) -> Table:
    """A table; columns in ``right`` hold numbers."""
    made = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    numbers = set(right)
    for name in columns:
        made.add_column(name, justify="right" if name in numbers else "left", no_wrap=name in numbers, overflow="fold")
    for row in rows:
        made.add_row(*row)
    return made


def print_json(content: Any) -> None:
    """Print JSON for other programs."""
    print(json.dumps(content, indent=2))
