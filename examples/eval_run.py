"""What the evaluations of memory have in common: options, the game that is recorded, one process after the other."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from rich.progress import Progress
from stable_baselines3 import DQN
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from benchmarks.atari import STACK
from benchmarks.buffer_building import SB3
from benchmarks.console import counted, progress_bar
from benchmarks.options import made_folder, positive
from benchmarks.played import Player, Recording, is_recorded, record
from examples.eval_contenders import chosen
from sb3_extra_buffers.errors import ExtraBuffersError
from sb3_extra_buffers.training_utils.atari import make_env

ENVIRONMENTS = 4
_SIZE, _QUICK_SIZE = 40_000, 1_000
#: How many steps are added for each row of a buffer: 12,475 for 10,000, as in the published table.
_STEPS_PER_ROW = 1.2475

T = TypeVar("T")


@dataclass(frozen=True)
class Evaluation(Generic[T]):
    """What came of it.

    :param results: that of Stable-Baselines3's buffer first
    :param missing: names that nothing is installed for
    :param problems: by name, why there is no result
    """

    results: list[T]
    missing: list[str]
    problems: dict[str, str]


def evaluation_parser(program: str, description: str, limit: int, epilog: str) -> argparse.ArgumentParser:
    """The options that both evaluations have.

    :param program: the module
    :param description: what it does
    :param limit: how many seconds a buffer may take to be filled, unless another number is given
    :param epilog: an example
    """
    command = f"python -m {program}"
    parser = argparse.ArgumentParser(prog=command, description=description, epilog=f"example: {command} {epilog}")
    parser.add_argument("--game", default="MsPacman", help="name of an ALE game (default: %(default)s)")
    names = (
        "such as zstd-5, lz4-block/1 or frames/memory (default: the published table's, and frames); +timeouts behind "
        "a name, also behind SB3: with the defaults of Stable-Baselines3, instead of optimize_memory_usage"
    )
    parser.add_argument("--codecs", nargs="+", metavar="CODEC", help=names)
    size = f"transitions that a buffer holds (default: {_SIZE:,}, with --quick {_QUICK_SIZE:,})"
    parser.add_argument("--size", type=positive, help=size)
    seconds = "of work after which no more is added to a buffer; the rest is extrapolated, and marked (default: {})"
    parser.add_argument("--limit", type=positive, default=limit, metavar="SECONDS", help=seconds.format(limit))
    parser.add_argument("--model", type=Path, metavar="FILE", help="a saved DQN that plays (default: random actions)")
    parser.add_argument("--seed", type=positive, default=1, help="of the games and of the player (default: 1)")
    recording = "a folder to keep what was played in, or, if it is there already, to take it from instead of playing"
    parser.add_argument("--recording", type=made_folder, metavar="FOLDER", help=recording)
    folder = "where CSV, Markdown and picture go (default: %(default)s)"
    parser.add_argument("--out", type=made_folder, metavar="FOLDER", default="memory-evaluation", help=folder)
    parser.add_argument("--quick", action="store_true", help="a minute or two: few codecs, few transitions")
    return parser


def parsed(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options, with what they come to; what is wrong with them is said before the work begins."""
    options = parser.parse_args(arguments)
    options.size = options.size or (_QUICK_SIZE if options.quick else _SIZE)
    if options.size % ENVIRONMENTS or options.size < 64 * ENVIRONMENTS:
        parser.error(
            f"--size {options.size}: it must be a multiple of {ENVIRONMENTS}, and at least {64 * ENVIRONMENTS}"
        )
    options.steps = int(options.size // ENVIRONMENTS * _STEPS_PER_ROW)
    if options.model is not None and not options.model.is_file():
        parser.error(f"--model {options.model}: there is no such file")
    return options


def evaluate(
    options: argparse.Namespace, measure: Callable[[str, str], T], keep: Callable[[list[T]], None]
) -> Evaluation[T]:
    """Record a game, then measure one buffer after the other.

    :param options: what was asked for
    :param measure: takes the recording's folder and a name
    :param keep: is given all results so far, each time there is one more
    """
    try:
        names, missing = chosen(options.codecs, options.quick)
        results: list[T] = []
        problems = {}
        with TemporaryDirectory() as temporary, progress_bar() as progress:
            folder = str(options.recording or temporary)
            _record(folder, options, progress)
            task = progress.add_task("", total=len(names) + 1)
            for name in (SB3, *names):
                progress.update(task, description=f"Measuring {name}", refresh=True)
                try:
                    results.append(measure(folder, name))
                    keep(results)
                except Exception as error:  # whatever a codec does wrong, the others are still worth showing
                    problems[name] = f"{type(error).__name__}: {error}"
                progress.update(task, advance=1, refresh=True)
    except ExtraBuffersError as error:
        sys.exit(f"error: {error}")
    return Evaluation(results, missing, problems)


def _record(folder: str, options: argparse.Namespace, progress: Progress) -> None:
    if is_recorded(folder):
        found = Recording(folder)
        if (found.steps, found.n_envs) != (options.steps, ENVIRONMENTS):
            sys.exit(f"error: --recording {folder} has {found.steps} steps, but this takes {options.steps}")
        return
    env = make_env(f"{options.game}NoFrameskip-v4", ENVIRONMENTS, DummyVecEnv, STACK, options.seed)
    try:
        with counted(progress, f"Playing {options.game}", options.steps) as report:
            record(folder, env, options.steps, _player(options, env), report)
    finally:
        env.close()


def _player(options: argparse.Namespace, env: VecEnv) -> Player:
    if options.model is None:
        env.action_space.seed(options.seed)
        return lambda observations: np.array([env.action_space.sample() for _ in observations])
    model = DQN.load(options.model, device="cpu", custom_objects={"buffer_size": 1})
    model.set_random_seed(options.seed)

    def play(observations: NDArray[np.uint8]) -> NDArray[np.int64]:
        actions, _ = model.predict(observations, deterministic=False)
        return actions

    return play
