"""Cost of the frame store by number of transitions, each size in its own process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
import torch
from stable_baselines3.common.save_util import save_to_pkl

from benchmarks._lib.atari import Transitions, stacked_frames
from benchmarks._lib.buffers import FRAMES, make_replay
from benchmarks._lib.console import counted, progress_bar
from benchmarks._lib.measure import measure_in_child, resident_nbytes
from benchmarks._lib.plotting import OURS, SB3, SUBTLE, TEXT, write_figure

_ENVIRONMENTS = 8
#: Frames that are played; a larger buffer repeats them.
_FRAMES = 50_000
_STEPS_PER_TIMING = 32


@dataclass(frozen=True)
class Point:
    """Figures of one size.

    :param transitions: number of transitions
    :param resident: growth of the process in bytes
    :param add: seconds per transition, into a full buffer
    :param sample: seconds per batch of 32
    :param saved: bytes of the pickle
    """

    transitions: int
    resident: int
    add: float
    sample: float
    saved: int

    def as_json(self) -> dict[str, float]:
        """As JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"{self.transitions:>9,} transitions: {self.resident / 1e6:,.1f} MB resident, add {self.add * 1e6:.1f} µs, "
            f"sample(32) {self.sample * 1e3:.3f} ms, saved as {self.saved / 1e6:,.1f} MB"
        )


def measure_growth(game: str, sizes: Sequence[int], rounds: int) -> list[Point]:
    """Fill a buffer of each size, and measure it when it is full.

    :param game: the game
    :param sizes: numbers of transitions
    :param rounds: repetitions of each operation
    """
    points = []
    with TemporaryDirectory() as folder, progress_bar() as progress:
        frames = min(_FRAMES, max(sizes))
        with counted(progress, f"Playing {game}", frames) as report:
            played = stacked_frames(game, frames, progress=report)
        file = str(Path(folder, "observations.npy"))
        np.save(file, np.ascontiguousarray(played.transpose(0, 3, 1, 2)))
        del played
        with counted(progress, "Sizes", len(sizes)) as report:
            for size in sizes:
                points.append(measure_in_child(_measure, file, folder, size, rounds))
                report(len(points))
    return points


def _measure(path: str, folder: str, transitions: int, rounds: int) -> Point:
    torch.set_num_threads(1)
    source = Transitions(np.asarray(np.load(path, mmap_mode="r")), _ENVIRONMENTS)
    small = make_replay(f"{FRAMES}speed", 8 * _ENVIRONMENTS, _ENVIRONMENTS)
    for _ in range(40):
        small.add(*source.step())
    small.sample(32)
    del small
    before = resident_nbytes()
    buffer = make_replay(f"{FRAMES}speed", transitions, _ENVIRONMENTS)
    for _ in range(buffer.buffer_size + 1):
        buffer.add(*source.step())
    resident = resident_nbytes() - before
    adds, samples = [], []
    for _ in range(rounds):
        steps = [source.step() for _ in range(_STEPS_PER_TIMING)]
        start = perf_counter()
        for step in steps:
            buffer.add(*step)
        adds.append((perf_counter() - start) / (_STEPS_PER_TIMING * _ENVIRONMENTS))
        start = perf_counter()
        buffer.sample(32)
        samples.append(perf_counter() - start)
    file = Path(folder, "buffer.pkl")
    save_to_pkl(file, buffer)
    saved = file.stat().st_size
    file.unlink()
    return Point(transitions, resident, median(adds), median(samples), saved)


_RAW_NBYTES = 2 * 4 * 84 * 84


def draw_growth(points: Sequence[Point], game: str, file: Path) -> None:
    """Draw memory, add and sample over the number of transitions.

    :param points: the figures
    :param game: the game
    :param file: the picture, .svg or .png
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.4), layout="constrained")
    memory, add, sample = figure.subplots(1, 3)
    sizes = [point.transitions for point in points]
    memory.loglog(sizes, [size * _RAW_NBYTES / 1e6 for size in sizes], "--", color=SB3, label="SB3 (computed)")
    memory.loglog(sizes, [point.resident / 1e6 for point in points], "o-", color=OURS, label="frames")
    memory.set_title("resident memory, MB", color=TEXT, fontsize=10)
    memory.legend(frameon=False, fontsize=9)
    for axes, values, title in (
        (add, [point.add * 1e6 for point in points], "add, µs per transition"),
        (sample, [point.sample * 1e6 for point in points], "sample(32), µs"),
    ):
        axes.semilogx(sizes, values, "o-", color=OURS)
        axes.set_ylim(0, 1.6 * max(values))
        axes.set_title(title, color=TEXT, fontsize=10)
    for axes in (memory, add, sample):
        axes.set_xlabel("transitions", color=SUBTLE)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    figure.suptitle(f"{game}: cost of the frame store over its size", color=TEXT, fontsize=11)
    write_figure(figure, file)
