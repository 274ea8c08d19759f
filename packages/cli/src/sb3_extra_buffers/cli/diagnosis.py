"""``doctor``: a report for bug reports."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from sb3_extra_buffers.cli.console import print_json
from sb3_extra_buffers.cli.exits import UNFORESEEN
from sb3_extra_buffers.doctor import examine, render


def doctor(json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Try everything that is installed, and tell what is broken and why. The exit code is 1 if anything is.

    Examples:

        sb3-buffers doctor

        sb3-buffers doctor --json > report.json
    """
    report = examine()
    if json:
        print_json(asdict(report))
    else:
        print(render(report))
    if not report.healthy:
        raise typer.Exit(UNFORESEEN)
