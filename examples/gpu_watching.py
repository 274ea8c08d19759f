"""How a model is watched that was trained with a buffer on a device."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from examples.gpu_options import FOLDER
from examples.playing import Trained
from examples.training_options import errors_in_one_line
from examples.watching import add_watching_options, watch
from sb3_extra_buffers.gpu_buffers.devices import as_device


def watch_pong(trained: Trained, watcher: str, arguments: Sequence[str] | None) -> None:
    """Load, play, print what each episode returned.

    :param trained: what to load
    :param watcher: the command of the example
    :param arguments: of the command line
    """
    parser = argparse.ArgumentParser(
        prog=watcher,
        description=f"Watch a model play Pong that {trained.trainer} has saved.",
        epilog=f"example: {watcher} --load pong --episodes 3 --render none",
    )
    load = "the folder that it was saved to (default: %(default)s)"
    parser.add_argument("--load", type=Path, metavar="FOLDER", default=FOLDER, help=load)
    add_watching_options(parser)
    options = parser.parse_args(arguments)
    with errors_in_one_line():
        watch(trained, options.load, "Pong", as_device(options.device), options)
