"""Watch a model of ``example_train_gpu_replay.py``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

if not __package__:  # run as a file: import from the root of the checkout
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples._lib.packages import required_packages

with required_packages():
    import sb3_extra_buffers.gpu_buffers  # noqa: F401  # a missing package is named before the options are parsed
    from examples._lib.playing import watch_pong_on_device


def main(arguments: Sequence[str] | None = None) -> None:
    """Play with a saved model, and print the returns."""
    watch_pong_on_device("dqn", arguments)


if __name__ == "__main__":
    main()
