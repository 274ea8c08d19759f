"""Options that the examples that train and play have in common, and how they fail."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch as th
from stable_baselines3.common.utils import get_device

from benchmarks.options import made_folder, positive
from sb3_extra_buffers.errors import DeviceError, ExtraBuffersError

#: The games of the examples. Any other that ale-py has works too.
GAMES = ("Pong", "MsPacman")


def add_game_option(parser: argparse.ArgumentParser) -> None:
    """Offer ``--game``."""
    games = f"{' or '.join(GAMES)}, or another that ale-py has (default: %(default)s)"
    parser.add_argument("--game", default=GAMES[0], help=games)


def env_id(game: str) -> str:
    """The environment of a game, with every frame: Stable-Baselines3's wrappers skip frames themselves."""
    return f"{game}NoFrameskip-v4"


def add_device_option(parser: argparse.ArgumentParser) -> None:
    """Offer ``--device``."""
    devices = "auto, cpu, cuda, cuda:1, mps, … (default: auto, which is cuda if there is one)"
    parser.add_argument("--device", default="auto", help=devices)


def found_device(name: str) -> th.device:
    """The device of that name. Stable-Baselines3 takes the CPU without a word if it is not there.

    :param name: what ``--device`` was given
    """
    device = get_device(name)
    if name != "auto" and th.device(name).type != device.type:
        raise DeviceError(name, "it is not there", "Leave out --device to take what is there.")
    return device


def add_training_options(parser: argparse.ArgumentParser, steps: int, quick: str) -> None:
    """Offer what all trainings take.

    :param parser: to add to
    :param steps: how long they take by default
    :param quick: what ``--quick`` comes to
    """
    add_device_option(parser)
    length = f"how long to train, in steps of all environments together (default: {steps:,})"
    parser.add_argument("--steps", type=positive, help=length)
    parser.add_argument("--envs", type=positive, default=8, help="games at once (default: %(default)s)")
    parser.add_argument("--seed", type=positive, default=1, help="of games, network and exploration (default: 1)")
    parser.add_argument("--quick", action="store_true", help=quick)


def add_buffer_options(parser: argparse.ArgumentParser) -> None:
    """Offer what the trainings on the host are compared by: the kind of buffer, and its codec."""
    twin = "compressed, or Stable-Baselines3's own for comparison; nothing else changes (default: compressed)"
    parser.add_argument("--buffer", choices=("compressed", "sb3"), default="compressed", help=twin)
    codec = "of a compressed buffer, such as zstd-3 or rle-jit (default: one is chosen)"
    parser.add_argument("--codec", default="auto", help=codec)


def default_folder(game: str) -> Path:
    """Where models of a game are saved and looked for, unless another folder is named."""
    return Path("trained", game)


def folder_to_save_to(parser: argparse.ArgumentParser, folder: Path) -> Path:
    """A folder to save to, made before the training that would be lost without it.

    :param parser: says what is wrong, and exits
    :param folder: what ``--save`` was given
    """
    try:
        return made_folder(str(folder))
    except argparse.ArgumentTypeError as error:
        parser.error(f"--save: {error}")


@contextmanager
def errors_in_one_line() -> Iterator[None]:
    """Whatever this project raises on purpose says what to do next; a traceback would only hide it."""
    try:
        yield
    except ExtraBuffersError as error:
        sys.exit(f"error: {error}")
