"""How long do importing the core, and listing and binding codecs take? See ``python -m benchmarks.imports --help``."""

from __future__ import annotations

import argparse
import subprocess
import sys
from statistics import median

from rich import box
from rich.table import Table

from benchmarks._lib.console import table_console
from sb3_extra_buffers import codecs

_ROUNDS = 7
_TIMED = "import time; begin = time.process_time(); {}; print(time.process_time() - begin)"


def main() -> None:
    """Time each statement in fresh interpreters, alternately, and print the medians."""
    argparse.ArgumentParser(prog="python -m benchmarks.imports", description=__doc__).parse_args()
    bind = "from sb3_extra_buffers.codecs import CellSpec, bind; bind({!r}, CellSpec('u1', 28224))"
    statements = {
        "import numpy": "import numpy",
        "import sb3_extra_buffers.codecs": "import sb3_extra_buffers.codecs",
        "list the codecs": "from sb3_extra_buffers.codecs import names; names()",
        **{f"bind {name}": bind.format(name) for name in codecs.names()},
    }
    seconds: dict[str, list[float]] = {label: [] for label in statements}
    for _ in range(_ROUNDS):
        for label, statement in statements.items():
            seconds[label].append(_cpu_seconds(statement))
    table = Table(title="CPU time in a fresh process", box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    table.add_column("what")
    table.add_column("ms", justify="right")
    for label, durations in seconds.items():
        table.add_row(label, f"{1000 * median(durations):.0f}")
    table_console().print(table)


def _cpu_seconds(statement: str) -> float:
    command = [sys.executable, "-c", _TIMED.format(statement)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    main()
