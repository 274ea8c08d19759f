"""DQN reaches goals that are images, from a compressed HER buffer. See ``python -m examples.train_her --help``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from benchmarks.options import positive
from sb3_extra_buffers.errors import MissingExtraError

try:
    import torch as th
    from gymnasium import spaces
    from stable_baselines3 import DQN
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.envs import BitFlippingEnv
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
    from stable_baselines3.her import HerReplayBuffer

    from benchmarks.console import table_console
    from examples.training_options import add_buffer_options, errors_in_one_line
    from examples.training_session import show_memory, train
    from sb3_extra_buffers.compressed import CompressedHerReplayBuffer
    from sb3_extra_buffers.training_utils.eval_model import eval_model
except ModuleNotFoundError as error:
    sys.exit(f"error: {MissingExtraError('This example', error.name or 'stable-baselines3', 'sb3')}")

_STEPS = 8_000
_QUICK_STEPS = 400
_EPISODES = 100


class Pixels(BaseFeaturesExtractor):
    """All pixels of all images side by side: each bit is one of them, which convolutions would only blur.

    :param observation_space: observation, achieved goal and desired goal
    """

    def __init__(self, observation_space: spaces.Dict) -> None:
        super().__init__(observation_space, spaces.flatdim(observation_space))

    def forward(self, observations: dict[str, th.Tensor]) -> th.Tensor:
        """Observations that are already scaled to the range from 0 to 1, in one row each."""
        return th.cat([image.flatten(1) for image in observations.values()], dim=1)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, print how many goals are reached and what the buffer takes."""
    options = _options(arguments)
    console = table_console()
    with errors_in_one_line():
        model = make_model(options)
        train(model, options.steps or (_QUICK_STEPS if options.quick else _STEPS), console)
        show_memory(model.replay_buffer, console)
    env = model.get_env()
    assert env is not None
    # Each step costs 1 until the goal is reached, so whoever never reaches it returns minus the number of steps.
    returns, _ = eval_model(_EPISODES, env, model)
    reached = sum(value > -options.bits for value in returns) / len(returns)
    console.print(f"goals reached: {reached:.0%} of {len(returns)}", highlight=False)


def make_model(options: argparse.Namespace) -> DQN:
    """A DQN that learns from each episode also what it would have learnt if it had wanted what it got.

    :param options: what was asked for
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
        prog="python -m examples.train_her",
        description="Flip bits, which are seen as gray images of 36 x 36, until all are set: a game in which a "
        "random player is hardly ever rewarded. Hindsight experience replay learns it all the same.",
        epilog="example: python -m examples.train_her --bits 10 --steps 20000 --buffer sb3",
    )
    add_buffer_options(parser)
    parser.add_argument("--bits", type=positive, default=8, help="that there are to flip (default: %(default)s)")
    parser.add_argument("--steps", type=positive, help=f"how long to train (default: {_STEPS:,})")
    parser.add_argument("--seed", type=positive, default=1, help="of game, network and exploration (default: 1)")
    parser.add_argument("--quick", action="store_true", help=f"to see that it runs: {_QUICK_STEPS} steps")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
