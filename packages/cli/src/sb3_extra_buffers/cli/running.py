"""``main``: run a command; whatever goes wrong is one sentence and a next step, unless a traceback is asked for."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from sb3_extra_buffers.cli.exits import REFUSED, UNFORESEEN
from sb3_extra_buffers.errors import ExtraBuffersError, MissingExtraError

if TYPE_CHECKING:
    from typer import Typer

DEBUG = "--debug"
#: Packages that the extra ``cli`` brings.
_LIBRARIES = {"typer", "rich", "click"}


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command that was typed, and exit.

    :param arguments: what was typed behind the name of the program; by default, what the process was started with
    """
    typed = list(sys.argv[1:] if arguments is None else arguments)
    debug = DEBUG in typed
    try:
        app = _app()
        app([word for word in typed if word != DEBUG], prog_name="sb3-buffers")
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):
            _forget_output()
        raise
    except BrokenPipeError:
        _forget_output()
    except Exception as error:  # of a library, a plugin or an environment: it is the user who has to be told
        if debug:
            traceback.print_exception(error)
        _tell(error, debug)
    sys.exit(0)


def _forget_output() -> NoReturn:
    """Whoever read has seen enough. What is still buffered must not complain when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
    sys.exit(0)


def _app() -> Typer:
    try:
        from sb3_extra_buffers.cli.app import app
    except ModuleNotFoundError as error:
        if error.name in _LIBRARIES:
            raise MissingExtraError("The command line", error.name, "cli") from error
        raise
    return app


def _tell(error: Exception, debug: bool) -> NoReturn:
    if isinstance(error, ExtraBuffersError):
        print(f"error: {error}", file=sys.stderr)
        sys.exit(REFUSED)
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        print(f"error: {place}{error.strerror or error}. Check the path.", file=sys.stderr)
        sys.exit(REFUSED)
    problem = f"{type(error).__name__}: {error}".rstrip(".:")
    hint = "" if debug else f" Add {DEBUG} to see where it comes from."
    print(f"error: {problem}.{hint}", file=sys.stderr)
    sys.exit(UNFORESEEN)
