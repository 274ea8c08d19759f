"""Who plays: which model is loaded, what to do if there is none, and what it achieved."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from zipfile import is_zipfile

import numpy as np
import torch as th
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.base_class import BaseAlgorithm

from benchmarks.options import positive
from examples.training_options import add_device_option, add_game_option, default_folder


class Trained(NamedTuple):
    """What a training left behind.

    :param kind: of the model
    :param file: its name in the folder
    :param trainer: the command that makes it
    """

    kind: type[BaseAlgorithm]
    file: str
    trainer: str

    def load(self, folder: Path, device: th.device) -> BaseAlgorithm:
        """The model, or an exit that says how to get one.

        :param folder: where it was saved
        :param device: where it shall compute
        """
        file = folder / self.file
        advice = f"Train a model first: {self.trainer} --save {folder}"
        if not file.is_file():
            sys.exit(f"error: {file} does not exist. {advice}")
        if not is_zipfile(file):
            sys.exit(f"error: {file} is not what Stable-Baselines3 saves; was it copied as a whole? {advice}")
        return self.kind.load(file, device=device)


#: What the trainings on the host leave behind, by the name of the algorithm.
TRAINED = {
    "dqn": Trained(DQN, "dqn.zip", "python -m examples.train_replay"),
    "ppo": Trained(PPO, "ppo.zip", "python -m examples.train_rollout"),
}


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Offer which model is meant: ``--game``, ``--algorithm`` and ``--load``."""
    add_game_option(parser)
    algorithm = "that it was trained with (default: %(default)s)"
    parser.add_argument("--algorithm", choices=list(TRAINED), default="ppo", help=algorithm)
    load = "the folder that it was saved to (default: trained/GAME)"
    parser.add_argument("--load", type=Path, metavar="FOLDER", help=load)


def named_model(options: argparse.Namespace) -> tuple[Trained, Path]:
    """The model that is meant, and its folder.

    :param options: what was asked for
    """
    trained = TRAINED[options.algorithm]
    folder = options.load or default_folder(options.game)
    return trained._replace(trainer=f"{trained.trainer} --game {options.game}"), folder


def add_playing_options(parser: argparse.ArgumentParser, episodes: int) -> None:
    """Offer what everybody takes who plays.

    :param parser: to add to
    :param episodes: how many are played by default
    """
    parser.add_argument("--episodes", type=positive, help=f"how many to play (default: {episodes})")
    parser.add_argument("--seed", type=positive, default=100, help="of the games (default: %(default)s)")
    add_device_option(parser)


def show_returns(returns: Sequence[float]) -> None:
    """Print what was achieved.

    :param returns: of the episodes
    """
    print("returns:", " ".join(f"{value:+.0f}" for value in returns))
    print(f"mean {np.mean(returns):+.1f}, standard deviation {np.std(returns):.1f}, {len(returns)} episodes")
