"""PPO learns an Atari game from compressed rollouts. See ``python -m examples.train_rollout --help``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from sb3_extra_buffers.errors import MissingExtraError

try:
    from stable_baselines3 import PPO
    from stable_baselines3.common.buffers import RolloutBuffer
    from stable_baselines3.common.vec_env import DummyVecEnv

    from benchmarks.console import table_console
    from examples import training_options as common
    from examples.atari_settings import PPO_STEPS, ROLLOUT, ppo_settings
    from examples.training_session import show_files, show_memory, train
    from sb3_extra_buffers.compressed import CompressedRolloutBuffer
    from sb3_extra_buffers.training_utils.atari import make_env
except ModuleNotFoundError as error:
    sys.exit(f"error: {MissingExtraError('This example', error.name or 'stable-baselines3', 'sb3')}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, print what the buffer takes, and save the model."""
    options = _options(arguments)
    console = table_console()
    with common.errors_in_one_line():
        model = make_model(options)
        train(model, options.steps or (2 * ROLLOUT * options.envs if options.quick else PPO_STEPS), console)
        show_memory(model.rollout_buffer, console)
        model_file = options.save / "ppo.zip"
        model.save(model_file)
        show_files(console, model_file)


def make_model(options: argparse.Namespace) -> PPO:
    """A PPO whose buffer, and nothing else, depends on ``--buffer``.

    :param options: what was asked for
    """
    if options.buffer == "compressed":
        buffer_class: type[RolloutBuffer] = CompressedRolloutBuffer
        buffer_kwargs = {"compression_method": options.codec}
    else:
        buffer_class, buffer_kwargs = RolloutBuffer, {}
    return PPO(
        "CnnPolicy",
        make_env(common.env_id(options.game), options.envs, DummyVecEnv, seed=options.seed),
        **ppo_settings(options.envs),
        rollout_buffer_class=buffer_class,
        rollout_buffer_kwargs=buffer_kwargs,
        seed=options.seed,
        device=common.found_device(options.device),
    )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m examples.train_rollout",
        description="Train PPO on an Atari game with a compressed rollout buffer. "
        "Then: python -m examples.evaluate, python -m examples.watch.",
        epilog="example: python -m examples.train_rollout --game Pong --buffer sb3 --steps 1000000 --save pong",
    )
    common.add_game_option(parser)
    common.add_buffer_options(parser)
    quick = "less than a minute, to see that it runs: two rollouts, unless --steps says more"
    common.add_training_options(parser, PPO_STEPS, quick)
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="the folder to save to (default: trained/GAME)")
    options = parser.parse_args(arguments)
    options.save = common.folder_to_save_to(parser, options.save or common.default_folder(options.game))
    return options


if __name__ == "__main__":
    main()
