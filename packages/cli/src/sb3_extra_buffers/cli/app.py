"""All commands together."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from sb3_extra_buffers.cli import advising, benchmarking, checkpoints, diagnosis, listing, starting

app = typer.Typer(
    name="sb3-buffers",
    help="Compressed experience buffers for Stable-Baselines3: what is installed, what to use, what is in a file.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # errors are told by who runs the app
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


app.command("codecs")(listing.codecs)
app.command("heaps")(listing.heaps)
app.command("doctor")(diagnosis.doctor)
app.command("advise")(advising.advise)
app.command(
    "bench", context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
)(benchmarking.bench)
app.command("inspect")(checkpoints.inspect)
app.command("verify")(checkpoints.verify)
app.command("new-codec")(starting.new_codec)
