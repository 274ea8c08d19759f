"""DQN learns an Atari game from a compressed replay buffer. See ``python -m examples.train_replay --help``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from sb3_extra_buffers.errors import MissingExtraError

try:
    from stable_baselines3 import DQN
    from stable_baselines3.common.buffers import ReplayBuffer
    from stable_baselines3.common.vec_env import DummyVecEnv

    from benchmarks.console import table_console
    from examples import training_options as common
    from examples.atari_settings import DQN_QUICK_STEPS, DQN_STEPS, dqn_settings
    from examples.training_session import show_files, show_memory, train
    from sb3_extra_buffers.compressed import CompressedReplayBuffer
    from sb3_extra_buffers.training_utils.atari import make_env
except ModuleNotFoundError as error:
    sys.exit(f"error: {MissingExtraError('This example', error.name or 'stable-baselines3', 'sb3')}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, print what the buffer takes, and save the model and the buffer."""
    options = _options(arguments)
    console = table_console()
    with common.errors_in_one_line():
        model = make_model(options)
        train(model, options.steps or (DQN_QUICK_STEPS if options.quick else DQN_STEPS), console)
        show_memory(model.replay_buffer, console)
        model_file, buffer_file = options.save / "dqn.zip", options.save / "replay_buffer.pkl"
        model.save(model_file)
        model.save_replay_buffer(buffer_file)
        show_files(console, model_file, buffer_file)


def make_model(options: argparse.Namespace) -> DQN:
    """A DQN whose buffer, and nothing else, depends on ``--buffer``.

    :param options: what was asked for
    """
    if options.buffer == "compressed":
        buffer_class: type[ReplayBuffer] = CompressedReplayBuffer
        buffer_kwargs = {"compression_method": options.codec}
    else:
        buffer_class, buffer_kwargs = ReplayBuffer, {}
    return DQN(
        "CnnPolicy",
        make_env(common.env_id(options.game), options.envs, DummyVecEnv, seed=options.seed),
        **dqn_settings(options.envs, options.quick),
        replay_buffer_class=buffer_class,
        replay_buffer_kwargs=buffer_kwargs,
        seed=options.seed,
        device=common.found_device(options.device),
    )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m examples.train_replay",
        description="Train DQN on an Atari game with a compressed replay buffer of 100,000 transitions. "
        "Then: python -m examples.evaluate, python -m examples.watch.",
        epilog="example: python -m examples.train_replay --game MsPacman --codec zstd-3 --steps 1000000 --save pacman",
    )
    common.add_game_option(parser)
    common.add_buffer_options(parser)
    quick = "less than a minute, to see that it runs: 1000 steps, unless --steps says otherwise, and a small buffer"
    common.add_training_options(parser, DQN_STEPS, quick)
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="the folder to save to (default: trained/GAME)")
    options = parser.parse_args(arguments)
    options.save = common.folder_to_save_to(parser, options.save or common.default_folder(options.game))
    return options


if __name__ == "__main__":
    main()
