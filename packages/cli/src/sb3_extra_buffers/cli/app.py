"""``main`` and the typer app with all commands: errors are one sentence with a next step. And the command ``bench``."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from sb3_extra_buffers.cli import advice, inspection, plugins
from sb3_extra_buffers.cli.console import BROKEN, REFUSED, print_rows
from sb3_extra_buffers.errors import ExtraBuffersError, FileContentError, ParameterError

DEBUG = "--debug"
_CHECKOUT = "Change to a checkout of the repository and run it there; advise measures your own observations anywhere."
_PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}

app = typer.Typer(
    name="sb3-buffers",
    help="Compressed experience buffers for Stable-Baselines3: plugins, advice, checkpoints and recordings.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # errors are printed by main()
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command of these words, by default those of this process, and exit."""
    typed = list(sys.argv[1:] if arguments is None else arguments)
    debug = DEBUG in typed
    try:
        app([word for word in typed if word != DEBUG], prog_name="sb3-buffers")
    except (BrokenPipeError, SystemExit) as end:
        if not any(isinstance(one, BrokenPipeError) for one in (end, end.__context__)):
            raise
        # The reader of the pipe has closed it: buffered output must not cause an error when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
    except Exception as error:  # also of a library, a plugin or an environment
        if debug:
            traceback.print_exception(error)
        _report(error, debug)
    sys.exit(0)


def _report(error: Exception, debug: bool) -> NoReturn:
    code, text = REFUSED, str(error)
    if not isinstance(error, (ExtraBuffersError, OSError)):
        hint = "" if debug else f" Add {DEBUG} to see where it comes from."
        code, text = BROKEN, f"{type(error).__name__}: {error}".rstrip(".:") + f".{hint}"
    elif not isinstance(error, ExtraBuffersError):
        file = f"{error.filename}: " if error.filename else ""
        text = f"{file}{error.strerror or error}. Check the path."
    print(f"error: {text}", file=sys.stderr)
    sys.exit(code)


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
    here = Path.cwd()
    folders = (one / "benchmarks" for one in (here, *here.parents) if (one / "noxfile.py").exists())
    folder = next((one for one in folders if (one / "__init__.py").exists()), None)
    if folder is None:
        needed = "a checkout of sb3-extra-buffers, whose folder benchmarks has what bench runs"
        raise FileContentError(str(here), needed, "no checkout here or above", _CHECKOUT)
    known = {path.stem: text for path in sorted(folder.glob("*.py")) if (text := _purpose(path))}
    if not name:
        print_rows(f"Benchmarks in {folder}:", known.items())
        return
    if name not in known:
        raise ParameterError("bench", "name", name, f"it must be one of: {', '.join(known)}")
    finished = subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *context.args], cwd=folder.parent)
    raise typer.Exit(finished.returncode)


def _purpose(path: Path) -> str:
    """The first line of the docstring of a module, if it can be run."""
    text = path.read_text(encoding="utf-8")
    docstring = ast.get_docstring(ast.parse(text)) or ""
    return docstring.partition("\n")[0].partition(" See ``")[0] if 'if __name__ == "__main__"' in text else ""


_command: Callable[..., None]
for _command in (plugins.codecs, plugins.heaps, plugins.doctor, advice.advise):
    app.command()(_command)
app.command(context_settings=_PASS_ON)(bench)
for _command in (inspection.inspect, inspection.verify, plugins.new_codec, plugins.new_heap):
    app.command()(_command)
