"""Training in the examples: shared options, a progress bar, the memory of the buffer, saved files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress, TaskID
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import BaseBuffer
from stable_baselines3.common.callbacks import BaseCallback

from benchmarks._lib.console import positive, progress_bar
from sb3_extra_buffers.compressed import BaseCompressedBuffer
from sb3_extra_buffers.errors import ExtraBuffersError

#: Episodes in the mean return that is shown.
_WINDOW = 20
_UPDATES_OF_THE_BAR = 200


def add_seed_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--seed``."""
    parser.add_argument("--seed", type=positive, default=1, help="seed of games, network and exploration (default: 1)")


def add_buffer_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--buffer`` and ``--codec``."""
    buffer = "compressed, or Stable-Baselines3's own for comparison; nothing else changes (default: compressed)"
    parser.add_argument("--buffer", choices=("compressed", "sb3"), default="compressed", help=buffer)
    codec = "codec of the compressed buffer, such as zstd-3 or rle-jit (default: chosen automatically)"
    parser.add_argument("--codec", default="auto", help=codec)


@contextmanager
def errors_in_one_line() -> Iterator[None]:
    """Exit with the message of an error of this project instead of a traceback."""
    try:
        yield
    except ExtraBuffersError as error:
        sys.exit(f"error: {error}")


def train(model: BaseAlgorithm, steps: int, console: Console) -> None:
    """Train, with a progress bar on stderr if that is a terminal. Ctrl-C ends the training early.

    :param model: the model
    :param steps: steps of all environments together
    :param console: where the result is printed
    """
    start = perf_counter()
    with progress_bar() as progress:
        bar = _Bar(progress, steps)
        with suppress(KeyboardInterrupt):  # what was learnt so far is kept
            model.learn(steps, callback=bar)
    seconds = perf_counter() - start
    returns = bar.returns[-_WINDOW:]
    mean = (
        f"mean return of the last {len(returns)} episodes: {np.mean(returns):+.1f}" if returns else "no episode ended"
    )
    console.print(
        f"{model.num_timesteps:,} steps on {model.device} in {seconds:,.0f} s, {mean}", highlight=False, soft_wrap=True
    )


def show_memory(buffer: object, console: Console) -> None:
    """Print the memory of a buffer's observations.

    :param buffer: the buffer of a model
    :param console: where to print
    """
    if isinstance(buffer, BaseCompressedBuffer):
        console.print(buffer.memory_report())
    elif isinstance(buffer, BaseBuffer):
        nbytes = sum(_nbytes(getattr(buffer, name, {})) for name in ("observations", "next_observations"))
        console.print(f"{type(buffer).__name__}: {nbytes / 1e6:,.1f} MB of observations", highlight=False)


def _nbytes(arrays: Any) -> int:
    """Bytes of an array, or of all arrays of a Dict space."""
    by_key = arrays.values() if isinstance(arrays, dict) else [arrays]
    return sum(array.nbytes for array in by_key)


def show_files(console: Console, *files: Path) -> None:
    """Print the names and sizes of saved files."""
    for file in files:
        size = file.stat().st_size / 1e6
        console.print(f"{file} ({size:,.1f} MB)", highlight=False, markup=False, soft_wrap=True)


class _Bar(BaseCallback):
    def __init__(self, progress: Progress, steps: int) -> None:
        super().__init__()
        self.returns: list[float] = []
        self._progress = progress
        self._task: TaskID = progress.add_task("Training", total=steps)
        self._every = max(1, steps // _UPDATES_OF_THE_BAR)
        self._due = 0

    def _on_step(self) -> bool:
        ended = [info["episode"]["r"] for info in self.locals["infos"] if "episode" in info]
        self.returns += map(float, ended)
        if self.num_timesteps >= self._due:
            self._due = self.num_timesteps + self._every
            recent = self.returns[-_WINDOW:]
            label = f"Training, return {np.mean(recent):+.1f}" if recent else "Training"
            self._progress.update(self._task, completed=self.num_timesteps, description=label, refresh=True)
        return True
