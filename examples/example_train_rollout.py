"""PPO learns an Atari game from a compressed rollout buffer."""

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
    from stable_baselines3.common.buffers import RolloutBuffer
    from stable_baselines3.common.vec_env import DummyVecEnv

    from examples._lib.atari import env_id, found_device, ppo_settings, run_training, training_options
    from sb3_extra_buffers.compressed import CompressedRolloutBuffer
    from sb3_extra_buffers.training_utils.atari import make_env


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, print the memory of the buffer, and save the model."""
    run_training(make_model, training_options("ppo", on_device=False, arguments=arguments))


def make_model(options: argparse.Namespace) -> PPO:
    """A PPO. Only its buffer depends on ``--buffer``.

    :param options: of the command line
    """
    if options.buffer == "compressed":
        buffer_class: type[RolloutBuffer] = CompressedRolloutBuffer
        buffer_kwargs = {"compression_method": options.codec}
    else:
        buffer_class, buffer_kwargs = RolloutBuffer, {}
    return PPO(
        "CnnPolicy",
        make_env(env_id(options.game), options.envs, DummyVecEnv, seed=options.seed),
        rollout_buffer_class=buffer_class,
        rollout_buffer_kwargs=buffer_kwargs,
        device=found_device(options.device),
        **ppo_settings(options),
    )


if __name__ == "__main__":
    main()
