"""PPO learns Pong from rollouts on a device. See ``python -m examples.train_gpu_rollout --help``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from sb3_extra_buffers.errors import MissingExtraError

try:
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import DummyVecEnv

    from benchmarks.console import table_console
    from examples.atari_settings import PPO_STEPS, ROLLOUT, ppo_settings
    from examples.gpu_options import add_storage_options, buffer_kwargs
    from examples.training_options import add_training_options, env_id, errors_in_one_line, folder_to_save_to
    from examples.training_session import show_files, show_memory, train
    from sb3_extra_buffers.gpu_buffers import GpuRolloutBuffer
    from sb3_extra_buffers.gpu_buffers.devices import as_device
    from sb3_extra_buffers.training_utils.atari import make_env
except ModuleNotFoundError as error:
    sys.exit(f"error: {MissingExtraError('This example', error.name or 'stable-baselines3', 'gpu')}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, print what the buffer takes, and save the model."""
    options = _options(arguments)
    console = table_console()
    with errors_in_one_line():
        model = make_model(options)
        train(model, options.steps or (2 * ROLLOUT * options.envs if options.quick else PPO_STEPS), console)
        show_memory(model.rollout_buffer, console)
        model_file = options.save / "ppo.zip"
        model.save(model_file)
        show_files(console, model_file)


def make_model(options: argparse.Namespace) -> PPO:
    """A PPO with the settings of Stable-Baselines3's zoo for Atari.

    :param options: what was asked for
    """
    # Stable-Baselines3 trains on the CPU without a word if a device is not there. Whoever named one wants to know.
    device = as_device(options.device)
    return PPO(
        "CnnPolicy",
        make_env(env_id("Pong"), options.envs, DummyVecEnv, seed=options.seed),
        **ppo_settings(options.envs),
        rollout_buffer_class=GpuRolloutBuffer,
        rollout_buffer_kwargs=buffer_kwargs(options),
        seed=options.seed,
        device=device,
    )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m examples.train_gpu_rollout",
        description="Train PPO on Pong with a rollout buffer whose observations live on a device, compressed. "
        "Then watch it: python -m examples.watch_gpu_rollout.",
        epilog="example: python -m examples.train_gpu_rollout --device cuda --codec rle --steps 1000000 --save pong",
    )
    add_training_options(
        parser, PPO_STEPS, "less than a minute, to see that it runs: two rollouts, unless --steps says more"
    )
    add_storage_options(parser)
    options = parser.parse_args(arguments)
    options.save = folder_to_save_to(parser, Path(options.save))
    return options


if __name__ == "__main__":
    main()
