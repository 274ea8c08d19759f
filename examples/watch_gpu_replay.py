"""Watch what ``examples.train_gpu_replay`` has learnt. See ``python -m examples.watch_gpu_replay --help``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from sb3_extra_buffers.errors import MissingExtraError

try:
    from stable_baselines3 import DQN

    from examples.gpu_watching import watch_pong
    from examples.playing import Trained
except ModuleNotFoundError as error:
    sys.exit(f"error: {MissingExtraError('This example', error.name or 'stable-baselines3', 'gpu')}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Play with a saved model, and print the returns."""
    trained = Trained(DQN, "dqn.zip", "python -m examples.train_gpu_replay")
    watch_pong(trained, "python -m examples.watch_gpu_replay", arguments)


if __name__ == "__main__":
    main()
