"""Watch what ``train_replay`` or ``train_rollout`` has learnt. See ``python -m examples.watch --help``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from sb3_extra_buffers.errors import MissingExtraError

try:
    from examples.playing import add_model_options, named_model
    from examples.training_options import errors_in_one_line, found_device
    from examples.watching import add_watching_options, watch
except ModuleNotFoundError as error:
    sys.exit(f"error: {MissingExtraError('This example', error.name or 'stable-baselines3', 'sb3')}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Play with a saved model, and print the returns."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.watch",
        description="Watch a model play that python -m examples.train_replay (dqn) or train_rollout (ppo) has saved.",
        epilog="example: python -m examples.watch --game MsPacman --algorithm dqn --episodes 3",
    )
    add_model_options(parser)
    add_watching_options(parser)
    options = parser.parse_args(arguments)
    with errors_in_one_line():
        watch(*named_model(options), options.game, found_device(options.device), options)


if __name__ == "__main__":
    main()
