"""What trainings show and leave behind: a bar while they learn, then what the buffer takes, then files."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress, TaskID
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import BaseBuffer
from stable_baselines3.common.callbacks import BaseCallback

from benchmarks.console import progress_bar
from sb3_extra_buffers.compressed import BaseCompressedBuffer

#: Over how many episodes the return that is shown is averaged.
_WINDOW = 20
_SHOWS = 200


def train(model: BaseAlgorithm, steps: int, console: Console) -> None:
    """Learn, with a bar on stderr if that is a terminal. Ctrl-C ends it early.

    :param model: what learns
    :param steps: of all environments together
    :param console: where the result is printed
    """
    start = perf_counter()
    with progress_bar() as progress:
        watch = _Bar(progress, steps)
        with suppress(KeyboardInterrupt):  # whoever has seen enough gets what was learnt so far
            model.learn(steps, callback=watch)
    seconds = perf_counter() - start
    returns = watch.returns[-_WINDOW:]
    mean = (
        f"mean return of the last {len(returns)} episodes: {np.mean(returns):+.1f}" if returns else "no episode ended"
    )
    console.print(
        f"{model.num_timesteps:,} steps on {model.device} in {seconds:,.0f} s, {mean}", highlight=False, soft_wrap=True
    )


def show_memory(buffer: object, console: Console) -> None:
    """Print what the observations of a buffer take, and what Stable-Baselines3's would, unless it is that one.

    :param buffer: of the model
    :param console: where to
    """
    if isinstance(buffer, BaseCompressedBuffer):
        console.print(buffer.memory_report())
    elif isinstance(buffer, BaseBuffer):
        nbytes = sum(_nbytes(getattr(buffer, name, {})) for name in ("observations", "next_observations"))
        console.print(f"{type(buffer).__name__}: {nbytes / 1e6:,.1f} MB of observations", highlight=False)


def _nbytes(arrays: Any) -> int:
    """What an array takes, or those of a Dict space together."""
    by_key = arrays.values() if isinstance(arrays, dict) else [arrays]
    return sum(array.nbytes for array in by_key)


def show_files(console: Console, *files: Path) -> None:
    """Print what was saved, with sizes."""
    for file in files:
        size = file.stat().st_size / 1e6
        console.print(f"{file} ({size:,.1f} MB)", highlight=False, markup=False, soft_wrap=True)


class _Bar(BaseCallback):
    def __init__(self, progress: Progress, steps: int) -> None:
        super().__init__()
        self.returns: list[float] = []
        self._progress = progress
        self._task: TaskID = progress.add_task("Training", total=steps)
        self._every = max(1, steps // _SHOWS)
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
