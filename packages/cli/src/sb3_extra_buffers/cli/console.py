"""Exit codes, and rows of text and JSON on stdout."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from sb3_extra_buffers.doctor.report import columns

#: Exit codes besides 0. Something is broken: a plugin, or an unexpected error.
BROKEN = 1
#: The request cannot be carried out; the error says why.
REFUSED = 2


def print_rows(title: str, rows: Iterable[Sequence[str]]) -> None:
    """Print a title, and rows in columns below it. No line is wrapped: commands in them can be copied."""
    print("\n".join([title, *(f"  {line}" for line in columns(list(rows)))]))


def print_json(content: Any) -> None:
    """Print JSON for other programs."""
    print(json.dumps(content, indent=2))
