"""Watch a model of ``example_train_replay.py`` or ``example_train_rollout.py``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if not __package__:  # run as a file: import from the root of the checkout
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples._lib.packages import required_packages

with required_packages():
    from examples._lib.atari import found_device
    from examples._lib.playing import add_model_options, add_watching_options, named_model, watch
    from examples._lib.training import errors_in_one_line


def main(arguments: Sequence[str] | None = None) -> None:
    """Play with a saved model, and print the returns."""
    parser = argparse.ArgumentParser(
        prog="python examples/example_watch.py",
        description="Watch a model of example_train_replay.py (dqn) or example_train_rollout.py (ppo).",
        epilog="example: python examples/example_watch.py --game MsPacman --algorithm dqn --episodes 3",
    )
    add_model_options(parser)
    add_watching_options(parser)
    options = parser.parse_args(arguments)
    with errors_in_one_line():
        watch(named_model(options), options.game, found_device(options.device), options)


if __name__ == "__main__":
    main()
