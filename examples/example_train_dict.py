"""DQN learns from a Dict of an image and a vector, compressed."""

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
    from stable_baselines3.common.buffers import DictReplayBuffer
    from stable_baselines3.common.env_util import make_vec_env

    from benchmarks._lib.console import positive, table_console
    from examples._lib.catch import CatchWithInstruments
    from examples._lib.networks import SmallCombined
    from examples._lib.training import add_buffer_options, add_seed_option, errors_in_one_line, show_memory, train
    from sb3_extra_buffers.compressed import CompressedDictReplayBuffer

_STEPS = 20_000
_QUICK_STEPS = 1_200
_WARM_UP = 1_000
_ENVIRONMENTS = 8


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, print the returns and the memory of each key of the buffer."""
    options = _options(arguments)
    console = table_console()
    with errors_in_one_line():
        model = make_model(options)
        train(model, options.steps, console)
        show_memory(model.replay_buffer, console)


def make_model(options: argparse.Namespace) -> DQN:
    """A DQN whose buffer keeps every transition: images compressed, vectors uncompressed.

    :param options: of the command line
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
        prog="python examples/example_train_dict.py",
        description="Catch falling balls, observed as one frame of 84 x 84 pixels and a vector of their speed. "
        "Each key has its own codec.",
        epilog="example: python examples/example_train_dict.py --codec zstd-3 --steps 10000",
    )
    add_buffer_options(parser)
    parser.add_argument("--steps", type=positive, help=f"length of the training (default: {_STEPS:,})")
    add_seed_option(parser)
    parser.add_argument("--quick", action="store_true", help=f"a short run of {_QUICK_STEPS:,} steps")
    options = parser.parse_args(arguments)
    options.steps = options.steps or (_QUICK_STEPS if options.quick else _STEPS)
    return options


if __name__ == "__main__":
    main()
