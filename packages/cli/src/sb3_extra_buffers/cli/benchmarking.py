"""``bench``: the benchmarks of the repository."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from sb3_extra_buffers.cli.console import console, table
from sb3_extra_buffers.errors import ParameterError

_CLONE = "Run it in a checkout of the repository, which has them; advise measures your own observations anywhere."


def bench(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Which benchmark; without one, all are listed.")] = "",
) -> None:
    """Run a benchmark of the project in a checkout of it: tables, and plots and JSON where it offers them.

    What follows the name is handed on to it.

    Examples:

        sb3-buffers bench

        sb3-buffers bench frames --quick

        sb3-buffers bench buffers --help
    """
    if name in ("-h", "--help"):
        print(context.get_help())
        return
    folder = _folder()
    known = {path.stem: text for path in sorted(folder.glob("*.py")) if (text := _purpose(path))}
    if not name:
        shown = table(f"Benchmarks in {folder}", ("name", "purpose"))
        for one, purpose in known.items():
            shown.add_row(one, purpose)
        console().print(shown)
        return
    if name not in known:
        raise ParameterError("bench", "name", name, f"it must be one of: {', '.join(known)}")
    finished = subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *context.args], cwd=folder.parent)
    raise typer.Exit(finished.returncode)


def _folder() -> Path:
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "benchmarks" / "__init__.py").exists() and (folder / "noxfile.py").exists():
            return folder / "benchmarks"
    raise ParameterError("bench", "folder", str(here), "there are no benchmarks here or above", _CLONE)


def _purpose(path: Path) -> str:
    """What a module says of itself, if it is one to run."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    runs = any(isinstance(part, ast.If) and "__main__" in ast.unparse(part.test) for part in tree.body)
    return (ast.get_docstring(tree) or "").partition("\n")[0].replace("``", "") if runs else ""
