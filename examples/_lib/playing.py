"""Playing Atari games with saved models: loading, options, returns, windows and videos."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from zipfile import is_zipfile

import numpy as np
import torch as th
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.base_class import BaseAlgorithm

from benchmarks._lib.console import positive
from examples._lib.atari import ALGORITHMS, DEVICE_FOLDER, add_device_option, add_game_option, default_folder, env_id
from examples._lib.training import errors_in_one_line
from sb3_extra_buffers.errors import MissingExtraError
from sb3_extra_buffers.training_utils.atari import make_env
from sb3_extra_buffers.training_utils.eval_model import eval_model

if TYPE_CHECKING:
    from sb3_extra_buffers.recording import RecordBuffer

_CLASSES: dict[str, type[BaseAlgorithm]] = {"dqn": DQN, "ppo": PPO}
_FRAMES_PER_SECOND = 15  # the game has 60, and the agent sees every fourth
_SCREEN = (210, 160)
_LONGEST_VIDEO = 20_000


class SavedModel(NamedTuple):
    """A model that an example has saved.

    :param algorithm: ``"dqn"`` or ``"ppo"``
    :param folder: where it was saved
    :param trainer: the command that trains it
    """

    algorithm: str
    folder: Path
    trainer: str

    def load(self, device: th.device) -> BaseAlgorithm:
        """Load the model, or exit with advice.

        :param device: device of the model
        """
        file = self.folder / ALGORITHMS[self.algorithm].file
        advice = f"Train a model first: {self.trainer} --save {self.folder}"
        if not file.is_file():
            sys.exit(f"error: {file} does not exist. {advice}")
        if not is_zipfile(file):
            sys.exit(f"error: {file} is not a model of Stable-Baselines3, or incomplete. {advice}")
        return _CLASSES[self.algorithm].load(file, device=device)


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--game``, ``--algorithm`` and ``--load``."""
    add_game_option(parser)
    algorithm = "algorithm of the model (default: %(default)s)"
    parser.add_argument("--algorithm", choices=list(_CLASSES), default="ppo", help=algorithm)
    load = "folder of the model (default: trained/GAME)"
    parser.add_argument("--load", type=Path, metavar="FOLDER", help=load)


def named_model(options: argparse.Namespace) -> SavedModel:
    """The model that the options of :func:`add_model_options` name.

    :param options: of the command line
    """
    trainer = f"python examples/example_train_{ALGORITHMS[options.algorithm].buffer}.py --game {options.game}"
    return SavedModel(options.algorithm, options.load or default_folder(options.game), trainer)


def add_playing_options(parser: argparse.ArgumentParser, episodes: int) -> None:
    """Add ``--episodes``, ``--seed`` and ``--device``.

    :param parser: the parser
    :param episodes: default number of episodes
    """
    parser.add_argument("--episodes", type=positive, help=f"number of episodes (default: {episodes})")
    parser.add_argument("--seed", type=positive, default=100, help="seed of the games (default: %(default)s)")
    add_device_option(parser)


def show_returns(returns: Sequence[float]) -> None:
    """Print the returns of episodes, with mean and standard deviation.

    :param returns: of the episodes
    """
    print("returns:", " ".join(f"{value:+.0f}" for value in returns))
    print(f"mean {np.mean(returns):+.1f}, standard deviation {np.std(returns):.1f}, {len(returns)} episodes")


def add_watching_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the examples that watch a model."""
    add_playing_options(parser, episodes=5)
    render = "show a window, write a video, or only print returns (default: human)"
    parser.add_argument("--render", choices=("human", "video", "none"), help=render)
    video = "file of the video, .mp4 or .gif (default: %(default)s)"
    parser.add_argument("--video", type=Path, metavar="FILE", default=Path("watched.mp4"), help=video)
    parser.add_argument("--quick", action="store_true", help="one episode without a window; other options still apply")


def watch(saved: SavedModel, game: str, device: th.device, options: argparse.Namespace) -> None:
    """Load a model, play, and print the returns.

    :param saved: the model
    :param game: the game
    :param device: device of the model
    :param options: of the command line
    """
    model = saved.load(device)
    episodes = options.episodes or (1 if options.quick else 5)
    render = options.render or ("none" if options.quick else "human")
    emulator: dict[str, Any] = {"render_mode": "human"} if render == "human" else {}
    env = make_env(env_id(game), 1, seed=options.seed, **emulator)
    recorder = _recorder() if render == "video" else None
    th.set_num_threads(1)  # for single observations, a second thread costs more than it gains
    # As in Stable-Baselines3's zoo for Atari: a deterministic policy can get stuck in a loop.
    returns, _ = eval_model(episodes, env, model, buffer=recorder, deterministic=False, record_frames="render")
    show_returns(returns)
    if recorder is not None:
        print(recorder.to_video(options.video, fps=_FRAMES_PER_SECOND))


def watch_pong_on_device(algorithm: str, arguments: Sequence[str] | None) -> None:
    """The examples that watch a model which was trained with a buffer on a device.

    :param algorithm: ``"dqn"`` or ``"ppo"``
    :param arguments: of the command line
    """
    from sb3_extra_buffers.gpu_buffers.devices import as_device

    trainer, command = (
        f"python examples/example_{verb}_gpu_{ALGORITHMS[algorithm].buffer}.py" for verb in ("train", "watch")
    )
    parser = argparse.ArgumentParser(
        prog=command,
        description=f"Watch a model play Pong that {trainer} has saved.",
        epilog=f"example: {command} --load pong --episodes 3 --render none",
    )
    load = "folder of the model (default: %(default)s)"
    parser.add_argument("--load", type=Path, metavar="FOLDER", default=DEVICE_FOLDER, help=load)
    add_watching_options(parser)
    options = parser.parse_args(arguments)
    with errors_in_one_line():
        watch(SavedModel(algorithm, options.load, trainer), "Pong", as_device(options.device), options)


def _recorder() -> RecordBuffer:
    try:
        from sb3_extra_buffers.recording import RecordBuffer

        import_module("av")  # find it missing before the game, not after it
    except ImportError as error:
        raise MissingExtraError("A video", error.name or "av", "video", "sb3-extra-buffers-recording") from error
    return RecordBuffer(_SCREEN, ch_num=3, size=_LONGEST_VIDEO)
