"""PPO learns Pong from a compressed rollout buffer on a device."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if not __package__:  # run as a file: import from the root of the checkout
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples._lib.packages import required_packages

with required_packages():
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import DummyVecEnv

    from examples._lib.atari import device_buffer_kwargs, env_id, ppo_settings, run_training, training_options
    from sb3_extra_buffers.gpu_buffers import GpuRolloutBuffer
    from sb3_extra_buffers.gpu_buffers.devices import as_device
    from sb3_extra_buffers.training_utils.atari import make_env


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, print the memory of the buffer, and save the model."""
    run_training(make_model, training_options("ppo", on_device=True, arguments=arguments))


def make_model(options: argparse.Namespace) -> PPO:
    """A PPO with the settings of Stable-Baselines3's zoo for Atari.

    :param options: of the command line
    """
    return PPO(
        "CnnPolicy",
        make_env(env_id(options.game), options.envs, DummyVecEnv, seed=options.seed),
        rollout_buffer_class=GpuRolloutBuffer,
        rollout_buffer_kwargs=device_buffer_kwargs(options),
        device=as_device(options.device),
        **ppo_settings(options),
    )


if __name__ == "__main__":
    main()
