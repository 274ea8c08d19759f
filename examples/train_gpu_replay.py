"""DQN learns Pong from a replay buffer on a device. See ``python -m examples.train_gpu_replay --help``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from sb3_extra_buffers.errors import MissingExtraError

try:
    from stable_baselines3 import DQN
    from stable_baselines3.common.vec_env import DummyVecEnv

    from benchmarks.console import table_console
    from examples.atari_settings import DQN_QUICK_STEPS, DQN_STEPS, dqn_settings
    from examples.gpu_options import add_storage_options, buffer_kwargs
    from examples.training_options import add_training_options, env_id, errors_in_one_line, folder_to_save_to
    from examples.training_session import show_files, show_memory, train
    from sb3_extra_buffers.gpu_buffers import GpuReplayBuffer
    from sb3_extra_buffers.gpu_buffers.devices import as_device
    from sb3_extra_buffers.training_utils.atari import make_env
except ModuleNotFoundError as error:
    sys.exit(f"error: {MissingExtraError('This example', error.name or 'stable-baselines3', 'gpu')}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, print what the buffer takes, and save the model and the buffer."""
    options = _options(arguments)
    console = table_console()
    with errors_in_one_line():
        model = make_model(options)
        train(model, options.steps or (DQN_QUICK_STEPS if options.quick else DQN_STEPS), console)
        show_memory(model.replay_buffer, console)
        model_file, buffer_file = options.save / "dqn.zip", options.save / "replay_buffer.pkl"
        model.save(model_file)
        model.save_replay_buffer(buffer_file)
        show_files(console, model_file, buffer_file)


def make_model(options: argparse.Namespace) -> DQN:
    """A DQN with the settings of Stable-Baselines3's zoo for Atari.

    :param options: what was asked for
    """
    # Stable-Baselines3 trains on the CPU without a word if a device is not there. Whoever named one wants to know.
    device = as_device(options.device)
    return DQN(
        "CnnPolicy",
        make_env(env_id("Pong"), options.envs, DummyVecEnv, seed=options.seed),
        **dqn_settings(options.envs, options.quick),
        replay_buffer_class=GpuReplayBuffer,
        replay_buffer_kwargs=buffer_kwargs(options),
        seed=options.seed,
        device=device,
    )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m examples.train_gpu_replay",
        description="Train DQN on Pong with a replay buffer whose observations live on a device, compressed. "
        "Then watch it: python -m examples.watch_gpu_replay.",
        epilog="example: python -m examples.train_gpu_replay --device cuda --codec rle --steps 1000000 --save pong",
    )
    quick = "less than a minute, to see that it runs: 1000 steps, unless --steps says otherwise, and a small buffer"
    add_training_options(parser, DQN_STEPS, quick)
    add_storage_options(parser)
    options = parser.parse_args(arguments)
    options.save = folder_to_save_to(parser, Path(options.save))
    return options


if __name__ == "__main__":
    main()
