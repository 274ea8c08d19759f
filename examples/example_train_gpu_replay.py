"""DQN learns Pong from a compressed replay buffer on a device."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if not __package__:  # run as a file: import from the root of the checkout
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples._lib.packages import required_packages

with required_packages():
    from stable_baselines3 import DQN
    from stable_baselines3.common.vec_env import DummyVecEnv

    from examples._lib.atari import device_buffer_kwargs, dqn_settings, env_id, run_training, training_options
    from sb3_extra_buffers.gpu_buffers import GpuReplayBuffer
    from sb3_extra_buffers.gpu_buffers.devices import as_device
    from sb3_extra_buffers.training_utils.atari import make_env


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, print the memory of the buffer, and save the model and the buffer."""
    run_training(make_model, training_options("dqn", on_device=True, arguments=arguments))


def make_model(options: argparse.Namespace) -> DQN:
    """A DQN with the settings of Stable-Baselines3's zoo for Atari.

    :param options: of the command line
    """
    return DQN(
        "CnnPolicy",
        make_env(env_id(options.game), options.envs, DummyVecEnv, seed=options.seed),
        replay_buffer_class=GpuReplayBuffer,
        replay_buffer_kwargs=device_buffer_kwargs(options),
        device=as_device(options.device),
        **dqn_settings(options),
    )


if __name__ == "__main__":
    main()
