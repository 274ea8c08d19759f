"""The typer app with all commands, and the command ``bench``."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from sb3_extra_buffers.cli import advice, inspection, plugins
from sb3_extra_buffers.cli.console import console, table
from sb3_extra_buffers.errors import ParameterError

_CHECKOUT = "Run it in a checkout of the repository; advise measures your own observations anywhere."

app = typer.Typer(
    name="sb3-buffers",
    help="Compressed experience buffers for Stable-Baselines3: plugins, advice, checkpoints and recordings.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # errors are printed by main()
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sb3-extra-buffers {version('sb3-extra-buffers')}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    _debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    pass


def bench(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The name of a benchmark; without one, all are listed.")] = "",
) -> None:
    """Run a benchmark of the project, in a checkout of its repository.

    Options after the name are passed on to the benchmark.

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
    raise ParameterError("bench", "folder", str(here), "there are no benchmarks here or above", _CHECKOUT)


def _purpose(path: Path) -> str:
    """The first line of the docstring of a module, if it can be run."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    runs = any(isinstance(part, ast.If) and "__main__" in ast.unparse(part.test) for part in tree.body)
    return (ast.get_docstring(tree) or "").partition("\n")[0].replace("``", "") if runs else ""


app.command("codecs")(plugins.codecs)
app.command("heaps")(plugins.heaps)
app.command("doctor")(plugins.doctor)
app.command("advise")(advice.advise)
app.command(
    "bench", context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
)(bench)
app.command("inspect")(inspection.inspect)
app.command("verify")(inspection.verify)
app.command("new-codec")(plugins.new_codec)
app.command("new-heap")(plugins.new_heap)
