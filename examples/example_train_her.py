"""DQN reaches goals that are images, from a compressed HER buffer."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if not __package__:  # run as a file: import from the root of the checkout
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples._lib.packages import required_packages

with required_packages():
    import torch as th
    from gymnasium import spaces
    from stable_baselines3 import DQN
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.envs import BitFlippingEnv
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
    from stable_baselines3.her import HerReplayBuffer

    from benchmarks._lib.console import positive, table_console
    from examples._lib.training import add_buffer_options, add_seed_option, errors_in_one_line, show_memory, train
    from sb3_extra_buffers.compressed import CompressedHerReplayBuffer
    from sb3_extra_buffers.training_utils.eval_model import eval_model

_STEPS = 8_000
_QUICK_STEPS = 400
_EPISODES = 100


class Pixels(BaseFeaturesExtractor):
    """All pixels of all images, flattened: each pixel is one bit, so convolutions would only blur them.

    :param observation_space: observation, achieved goal and desired goal
    """

    def __init__(self, observation_space: spaces.Dict) -> None:
        super().__init__(observation_space, spaces.flatdim(observation_space))

    def forward(self, observations: dict[str, th.Tensor]) -> th.Tensor:
        """Features of observations that are already scaled to [0, 1]."""
        return th.cat([image.flatten(1) for image in observations.values()], dim=1)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, print the memory of the buffer and how many goals are reached."""
    options = _options(arguments)
    console = table_console()
    with errors_in_one_line():
        model = make_model(options)
        train(model, options.steps or (_QUICK_STEPS if options.quick else _STEPS), console)
        show_memory(model.replay_buffer, console)
    env = model.get_env()
    assert env is not None
    # Each step costs 1 until the goal is reached; an episode has as many steps as bits.
    returns, _ = eval_model(_EPISODES, env, model)
    reached = sum(value > -options.bits for value in returns) / len(returns)
    console.print(f"goals reached: {reached:.0%} of {len(returns)}", highlight=False)


def make_model(options: argparse.Namespace) -> DQN:
    """A DQN with hindsight experience replay.

    :param options: of the command line
    """
    hindsight = {"n_sampled_goal": 4, "goal_selection_strategy": "future"}
    if options.buffer == "compressed":
        buffer_class: type[HerReplayBuffer] = CompressedHerReplayBuffer
        buffer_kwargs = {**hindsight, "compression_method": options.codec}
    else:
        buffer_class, buffer_kwargs = HerReplayBuffer, hindsight
    env_kwargs = {"n_bits": options.bits, "image_obs_space": True}
    return DQN(
        "MultiInputPolicy",
        make_vec_env(BitFlippingEnv, n_envs=1, seed=options.seed, env_kwargs=env_kwargs),
        learning_rate=1e-3,
        buffer_size=_STEPS,
        learning_starts=100,
        gamma=0.9,
        train_freq=1,
        target_update_interval=100,
        exploration_fraction=0.3,
        exploration_final_eps=0.05,
        replay_buffer_class=buffer_class,
        replay_buffer_kwargs=buffer_kwargs,
        policy_kwargs={"features_extractor_class": Pixels, "net_arch": [64, 64]},
        seed=options.seed,
    )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python examples/example_train_her.py",
        description="Flip bits, shown as gray images of 36 x 36 pixels, until all are set. A random player is hardly "
        "ever rewarded, but hindsight experience replay learns the game.",
        epilog="example: python examples/example_train_her.py --bits 10 --steps 20000 --buffer sb3",
    )
    add_buffer_options(parser)
    parser.add_argument("--bits", type=positive, default=8, help="number of bits (default: %(default)s)")
    parser.add_argument("--steps", type=positive, help=f"length of the training (default: {_STEPS:,})")
    add_seed_option(parser)
    parser.add_argument("--quick", action="store_true", help=f"a short run of {_QUICK_STEPS} steps")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
