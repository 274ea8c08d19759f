"""One run over one game: play it, time all buffers in turn, and fill each in a process of its own."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.atari import stacked_frames
from benchmarks.buffer_building import SB3
from benchmarks.buffer_measure import Settings, Timings, measure_buffers
from benchmarks.buffer_resident import resident_of_replay
from benchmarks.console import counted, progress_bar
from benchmarks.resident import measure_in_child


def measure_game(
    game: str, names: list[str], settings: Settings, frames: int, transitions: int
) -> tuple[Timings, dict[str, int]]:
    """Timings of all buffers, and the resident memory of each.

    :param game: what to play
    :param names: codecs and frame stores; Stable-Baselines3's buffer comes along
    :param settings: how to measure
    :param frames: how many observations to play; buffers that are larger get them again
    :param transitions: of which resident memory is measured
    """
    resident = {}
    with TemporaryDirectory() as folder, progress_bar() as progress:
        with counted(progress, f"Playing {game}", frames) as report:
            played = stacked_frames(game, frames, progress=report)
        observations = np.ascontiguousarray(played.transpose(0, 3, 1, 2))
        task = progress.add_task("Measuring", total=9)
        timings = measure_buffers(
            observations, names, settings, lambda text: progress.update(task, description=text, advance=1, refresh=True)
        )
        progress.remove_task(task)
        file = str(Path(folder, "observations.npy"))
        np.save(file, observations)
        with counted(progress, "Resident memory", len(names) + 1) as report:
            for name in (SB3, *names):
                resident[name] = measure_in_child(resident_of_replay, file, name, transitions)
                report(len(resident))
    return timings, resident
