"""``main``: run a command, print an error as one sentence with a next step, and exit."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from sb3_extra_buffers.errors import ExtraBuffersError, MissingExtraError

if TYPE_CHECKING:
    from typer import Typer

#: Exit codes besides 0. Something is broken: a plugin, or an unexpected error.
BROKEN = 1
#: The request cannot be carried out; the error says why.
REFUSED = 2
DEBUG = "--debug"
#: Packages of the extra ``cli``.
_LIBRARIES = {"typer", "rich", "click"}


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command, and exit.

    :param arguments: the words after the name of the program; by default, those of this process
    """
    typed = list(sys.argv[1:] if arguments is None else arguments)
    debug = DEBUG in typed
    try:
        app = _app()
        app([word for word in typed if word != DEBUG], prog_name="sb3-buffers")
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):
            _discard_output()
        raise
    except BrokenPipeError:
        _discard_output()
    except Exception as error:  # also of a library, a plugin or an environment
        if debug:
            traceback.print_exception(error)
        _report(error, debug)
    sys.exit(0)


def _discard_output() -> NoReturn:
    """The reader of the pipe has closed it: buffered output must not cause an error when the interpreter ends."""
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


def _report(error: Exception, debug: bool) -> NoReturn:
    if isinstance(error, ExtraBuffersError):
        print(f"error: {error}", file=sys.stderr)
        sys.exit(REFUSED)
    if isinstance(error, OSError):
        file = f"{error.filename}: " if error.filename else ""
        print(f"error: {file}{error.strerror or error}. Check the path.", file=sys.stderr)
        sys.exit(REFUSED)
    problem = f"{type(error).__name__}: {error}".rstrip(".:")
    hint = "" if debug else f" Add {DEBUG} to see where it comes from."
    print(f"error: {problem}.{hint}", file=sys.stderr)
    sys.exit(BROKEN)
