"""Training on Atari games: options, the settings of Stable-Baselines3's zoo, and what is saved."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch as th
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.utils import get_device

from benchmarks._lib.console import made_folder, positive, table_console
from examples._lib.training import (
    add_buffer_options,
    add_seed_option,
    errors_in_one_line,
    show_files,
    show_memory,
    train,
)
from sb3_extra_buffers.errors import DeviceError

#: The games of the examples. Other games of ale-py work, too.
GAMES = ("Pong", "MsPacman")
#: Default folder of models that were trained with a buffer on a device.
DEVICE_FOLDER = Path("gpu-pong")

_UPDATE_EVERY = 4  # steps
_ROLLOUT = 128  # steps of each environment


class Algorithm(NamedTuple):
    """An algorithm and how long it is trained.

    :param name: name of its class
    :param buffer: kind of its buffer
    :param steps: steps of the zoo, of all environments together
    :param quick: what ``--quick`` does
    :param file: the saved model
    """

    name: str
    buffer: str
    steps: int
    quick: str
    file: str


ALGORITHMS = {
    "dqn": Algorithm("DQN", "replay", 5_000_000, "1000 steps and a small buffer", "dqn.zip"),
    "ppo": Algorithm("PPO", "rollout", 10_000_000, "two rollouts", "ppo.zip"),
}


def dqn_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Arguments of ``DQN``.

    :param options: of the command line
    """
    return {
        "learning_rate": 1e-4,
        "buffer_size": 2_000 if options.quick else 100_000,
        "learning_starts": 800 if options.quick else 100_000,
        "train_freq": _UPDATE_EVERY,
        "gradient_steps": options.envs,  # one update per _UPDATE_EVERY transitions
        "target_update_interval": 1_000,
        "exploration_fraction": 0.1,
        "exploration_final_eps": 0.01,
        "seed": options.seed,
    }


def ppo_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Arguments of ``PPO``.

    :param options: of the command line
    """
    return {
        "learning_rate": 2.5e-4,
        "n_steps": _ROLLOUT,
        "n_epochs": 4,
        "batch_size": _ROLLOUT * options.envs // 4,
        "clip_range": 0.1,
        "ent_coef": 0.01,
        "seed": options.seed,
    }


def training_options(algorithm: str, on_device: bool, arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the options of a training, and make the folder to save to.

    :param algorithm: ``"dqn"`` or ``"ppo"``
    :param on_device: whether the buffer is on a device; then the game is Pong
    :param arguments: of the command line
    """
    name, buffer, steps, quick, _ = ALGORITHMS[algorithm]
    suffix = f"gpu_{buffer}" if on_device else buffer
    command = f"python examples/example_train_{suffix}.py"
    if on_device:
        description = f"Train {name} on Pong with a {buffer} buffer that keeps its observations compressed on a device."
        following, example = f"example_watch_{suffix}.py", "--device cuda --codec rle --steps 1000000 --save pong"
    else:
        description = f"Train {name} on an Atari game with a compressed {buffer} buffer."
        following, example = "example_evaluate.py, example_watch.py", "--game MsPacman --steps 1000000 --save pacman"
    parser = argparse.ArgumentParser(
        prog=command, description=f"{description} Afterwards: {following}.", epilog=f"example: {command} {example}"
    )
    if on_device:
        _add_device_buffer_options(parser)
        parser.set_defaults(game=GAMES[0])
    else:
        add_game_option(parser)
        add_buffer_options(parser)
    add_device_option(parser)
    length = f"length of the training, in steps of all environments together (default: {steps:,})"
    parser.add_argument("--steps", type=positive, help=length)
    parser.add_argument("--envs", type=positive, default=8, help="number of environments (default: %(default)s)")
    add_seed_option(parser)
    short = f"a short run of less than a minute: {quick}; --steps still applies"
    parser.add_argument("--quick", action="store_true", help=short)
    place = DEVICE_FOLDER if on_device else "trained/GAME"
    parser.add_argument("--save", type=Path, metavar="FOLDER", help=f"folder for the model (default: {place})")
    options = parser.parse_args(arguments)
    quick_steps = 1_000 if algorithm == "dqn" else 2 * _ROLLOUT * options.envs
    options.steps = options.steps or (quick_steps if options.quick else steps)
    folder = options.save or (DEVICE_FOLDER if on_device else default_folder(options.game))
    try:
        options.save = made_folder(str(folder))  # now, so that no training is lost
    except argparse.ArgumentTypeError as error:
        parser.error(f"--save: {error}")
    return options


def run_training(make_model: Callable[[argparse.Namespace], DQN | PPO], options: argparse.Namespace) -> None:
    """Train, print the memory of the buffer, and save the model, and the replay buffer if there is one.

    :param make_model: makes the model
    :param options: from :func:`training_options`
    """
    console = table_console()
    with errors_in_one_line():
        model = make_model(options)
        train(model, options.steps, console)
        if isinstance(model, DQN):
            show_memory(model.replay_buffer, console)
            files = [options.save / ALGORITHMS["dqn"].file, options.save / "replay_buffer.pkl"]
            model.save_replay_buffer(files[1])
        else:
            show_memory(model.rollout_buffer, console)
            files = [options.save / ALGORITHMS["ppo"].file]
        model.save(files[0])
        show_files(console, *files)


def _add_device_buffer_options(parser: argparse.ArgumentParser) -> None:
    codec = "codec of the buffer: rle, zstd-5, lz4-block/1, none, auto, … (default: rle; with --layout frames: auto)"
    parser.add_argument("--codec", help=codec)
    layout = "store whole observations, or each frame of the stacks once (default: cells)"
    parser.add_argument("--layout", choices=("cells", "frames"), help=layout)


def device_buffer_kwargs(options: argparse.Namespace) -> dict[str, Any]:
    """Arguments of a buffer on a device besides those that Stable-Baselines3 passes.

    :param options: of the command line
    """
    codec = options.codec or ("auto" if options.layout == "frames" else "rle")
    return {"compression_method": codec, "layout": options.layout}


def add_game_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--game``."""
    games = f"{' or '.join(GAMES)}, or another game of ale-py (default: %(default)s)"
    parser.add_argument("--game", default=GAMES[0], help=games)


def add_device_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--device``."""
    devices = "auto, cpu, cuda, cuda:1, mps, … (default: auto, which is cuda if available)"
    parser.add_argument("--device", default="auto", help=devices)


def env_id(game: str) -> str:
    """Id of a game's environment without frame skipping: Stable-Baselines3's wrappers skip frames themselves."""
    return f"{game}NoFrameskip-v4"


def default_folder(game: str) -> Path:
    """Default folder of the models of a game."""
    return Path("trained", game)


def found_device(name: str) -> th.device:
    """The device of that name. Stable-Baselines3 would silently use the CPU if it is not available.

    :param name: value of ``--device``
    """
    device = get_device(name)
    if name != "auto" and th.device(name).type != device.type:
        raise DeviceError(name, "it is not available", "Leave out --device to use an available one.")
    return device
