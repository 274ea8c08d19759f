"""Watch what ``examples.train_gpu_rollout`` has learnt. See ``python -m examples.watch_gpu_rollout --help``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from sb3_extra_buffers.errors import MissingExtraError

try:
    from stable_baselines3 import PPO

    from examples.gpu_watching import watch_pong
    from examples.playing import Trained
except ModuleNotFoundError as error:
    sys.exit(f"error: {MissingExtraError('This example', error.name or 'stable-baselines3', 'gpu')}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Play with a saved model, and print the returns."""
    trained = Trained(PPO, "ppo.zip", "python -m examples.train_gpu_rollout")
    watch_pong(trained, "python -m examples.watch_gpu_rollout", arguments)


if __name__ == "__main__":
    main()
