"""DQN learns from a Dict of an image and a vector, compressed. See ``python -m examples.train_dict --help``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from benchmarks.options import positive
from sb3_extra_buffers.errors import MissingExtraError

try:
    from stable_baselines3 import DQN
    from stable_baselines3.common.buffers import DictReplayBuffer
    from stable_baselines3.common.env_util import make_vec_env

    from benchmarks.console import table_console
    from examples.catch_dict import CatchWithInstruments, SmallCombined
    from examples.training_options import add_buffer_options, errors_in_one_line
    from examples.training_session import show_memory, train
    from sb3_extra_buffers.compressed import CompressedDictReplayBuffer
except ModuleNotFoundError as error:
    sys.exit(f"error: {MissingExtraError('This example', error.name or 'stable-baselines3', 'sb3')}")

_STEPS = 20_000
_QUICK_STEPS = 1_200
_WARM_UP = 1_000
_ENVIRONMENTS = 8


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, print what was learnt and what each key of the buffer takes."""
    options = _options(arguments)
    console = table_console()
    with errors_in_one_line():
        model = make_model(options)
        train(model, options.steps, console)
        show_memory(model.replay_buffer, console)


def make_model(options: argparse.Namespace) -> DQN:
    """A DQN whose buffer keeps every transition: the image with a codec, the vector as it is.

    :param options: what was asked for
    """
    if options.buffer == "compressed":
        buffer_class: type[DictReplayBuffer] = CompressedDictReplayBuffer
        buffer_kwargs = {"compression_method": {"image": options.codec, "instruments": "none"}}
    else:
        buffer_class, buffer_kwargs = DictReplayBuffer, {}
    return DQN(
        "MultiInputPolicy",
        make_vec_env(CatchWithInstruments, _ENVIRONMENTS, seed=options.seed),
        learning_rate=5e-4,
        buffer_size=options.steps,
        learning_starts=_WARM_UP,
        gamma=0.95,
        train_freq=1,
        target_update_interval=500,
        exploration_fraction=0.25,
        exploration_final_eps=0.02,
        replay_buffer_class=buffer_class,
        replay_buffer_kwargs=buffer_kwargs,
        policy_kwargs={"features_extractor_class": SmallCombined, "net_arch": []},
        seed=options.seed,
    )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m examples.train_dict",
        description="Catch falling balls, seen as one frame of 84 x 84 pixels and a vector of how fast they move. "
        "Each key has a codec of its own.",
        epilog="example: python -m examples.train_dict --codec zstd-3 --steps 10000",
    )
    add_buffer_options(parser)
    parser.add_argument("--steps", type=positive, help=f"how long to train (default: {_STEPS:,})")
    parser.add_argument("--seed", type=positive, default=1, help="of games, network and exploration (default: 1)")
    parser.add_argument("--quick", action="store_true", help=f"to see that it runs: {_QUICK_STEPS:,} steps")
    options = parser.parse_args(arguments)
    options.steps = options.steps or (_QUICK_STEPS if options.quick else _STEPS)
    return options


if __name__ == "__main__":
    main()
