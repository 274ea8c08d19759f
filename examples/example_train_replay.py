"""DQN learns an Atari game from a compressed replay buffer."""

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
    from stable_baselines3.common.buffers import ReplayBuffer
    from stable_baselines3.common.vec_env import DummyVecEnv

    from examples._lib.atari import dqn_settings, env_id, found_device, run_training, training_options
    from sb3_extra_buffers.compressed import CompressedReplayBuffer
    from sb3_extra_buffers.training_utils.atari import make_env


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, print the memory of the buffer, and save the model and the buffer."""
    run_training(make_model, training_options("dqn", on_device=False, arguments=arguments))


def make_model(options: argparse.Namespace) -> DQN:
    """A DQN. Only its buffer depends on ``--buffer``.

    :param options: of the command line
    """
    if options.buffer == "compressed":
        buffer_class: type[ReplayBuffer] = CompressedReplayBuffer
        buffer_kwargs = {"compression_method": options.codec}
    else:
        buffer_class, buffer_kwargs = ReplayBuffer, {}
    return DQN(
        "CnnPolicy",
        make_env(env_id(options.game), options.envs, DummyVecEnv, seed=options.seed),
        replay_buffer_class=buffer_class,
        replay_buffer_kwargs=buffer_kwargs,
        device=found_device(options.device),
        **dqn_settings(options),
    )


if __name__ == "__main__":
    main()
