"""Time and memory of buffers, beside Stable-Baselines3's in the same run, as figures and as tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Group
from rich.table import Table
from stable_baselines3.common.buffers import ReplayBuffer, RolloutBuffer

from benchmarks._lib.atari import Step, Transitions, stacked_frames
from benchmarks._lib.buffers import (
    ROLLOUT_ENVS,
    ROLLOUT_STEPS,
    SB3,
    check_replay,
    check_rollout,
    fill_replay,
    fill_replays,
    make_replay,
    make_rollouts,
)
from benchmarks._lib.console import counted, progress_bar
from benchmarks._lib.measure import interleaved_medians, measure_in_child, resident_nbytes
from sb3_extra_buffers.compressed import BaseCompressedBuffer

#: Transitions per timed call of ``add``: a multiple of what our buffers compress together, so that every call includes
#: its share of that work.
TRANSITIONS_PER_CALL = 256
MINIBATCH = 256

_ENVIRONMENTS = 8
#: Heading and factor of the seconds, by operation.
_ADDING = {
    "add_1": ("add µs\n1 env", 1e6),
    "add_8": ("add µs\n8 envs", 1e6),
    "add_turned_1": ("add, turned µs\n1 env", 1e6),
    "add_turned_8": ("add, turned µs\n8 envs", 1e6),
}
_READING = {
    "sample_32": ("sample ms\n32", 1e3),
    "sample_256": ("sample ms\n256", 1e3),
    "get_256": ("get ms\n256", 1e3),
}
_CAPTION = (
    "Medians, and how many times as long as SB3's buffer in the same run.\n"
    "smaller: size of the raw observations and next observations, divided by the stored size.\n"
    "resident: growth of a process that fills a replay buffer with {transitions:,} transitions.\n"
    "sample from a buffer of 8 environments, get per minibatch of a rollout of 128 steps of 8.\n"
    "add per transition, into a full buffer; turned: of channels-last views, as VecTransposeImage makes them."
)

#: Called with the name of the next measurement.
Reporter = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """How to measure.

    :param transitions: size of the replay buffers
    :param rounds: repetitions of each operation
    :param threads: threads that decode; ``None`` for the automatic choice
    """

    transitions: int
    rounds: int
    threads: int | None


@dataclass(frozen=True)
class Timings:
    """Seconds by operation and codec: per transition for ``add``, per batch for ``sample`` and ``get``.

    ``add`` takes C-contiguous arrays, ``add_turned`` the views that ``VecTransposeImage`` makes in training.
    """

    seconds: dict[str, dict[str, float]]
    ratios: dict[str, float]

    def to_sb3(self, operation: str, codec: str) -> float:
        """Ratio to Stable-Baselines3's buffer."""
        return self.seconds[operation][codec] / self.seconds[operation][SB3]


def measure_buffers(
    observations: NDArray[np.uint8], codecs: Sequence[str], settings: Settings, report: Reporter
) -> Timings:
    """Fill buffers with the same content, check that they return the same batches, then time them alternately.

    :param observations: shape ``(n, 4, 84, 84)``
    :param codecs: names of codecs; Stable-Baselines3's buffer is added
    :param settings: how to measure
    :param report: called with the name of the next measurement
    """
    seconds: dict[str, dict[str, float]] = {}
    names, ratios = [SB3, *codecs], {SB3: 1.0}
    for n_envs in (1, 8):
        report(f"Filling, {n_envs} env{'s' if n_envs > 1 else ''}")
        buffers = {name: make_replay(name, settings.transitions, n_envs, settings.threads) for name in names}
        source = Transitions(observations, n_envs)
        fill_replays(buffers.values(), source)
        feeders = {name: Feeder(buffer, source.twin()) for name, buffer in buffers.items()}
        for operation, turned in (("add", False), ("add_turned", True)):
            report(f"Timing {operation}, n_envs {n_envs}")
            seconds[f"{operation}_{n_envs}"] = _add(feeders, settings.rounds, turned)
    for batch_size in (32, 256):
        report(f"Timing sample({batch_size})")
        seconds[f"sample_{batch_size}"] = _sample(buffers, batch_size, settings.rounds)
    for name, buffer in buffers.items():
        if isinstance(buffer, BaseCompressedBuffer):
            ratios[name] = buffer.memory_report().ratio
    report(f"Timing get({MINIBATCH})")
    seconds[f"get_{MINIBATCH}"] = _get(observations, names, settings)
    return Timings(seconds, ratios)


class Feeder:
    """A full buffer and the following transitions.

    :param buffer: a filled buffer
    :param source: continues the stream
    """

    def __init__(self, buffer: ReplayBuffer, source: Transitions) -> None:
        self.buffer, self._source = buffer, source
        self._steps: list[Step] = []

    def prepare(self, turned: bool = False) -> None:
        """Make new arrays, untimed: this is the work of the environment.

        :param turned: make views as ``VecTransposeImage`` does
        """
        steps = [self._source.step() for _ in range(TRANSITIONS_PER_CALL // self.buffer.n_envs)]
        self._steps = [step.turned() for step in steps] if turned else steps

    def add(self) -> None:
        """Add the prepared transitions."""
        for step in self._steps:
            self.buffer.add(*step)


def _add(feeders: dict[str, Feeder], rounds: int, turned: bool) -> dict[str, float]:
    for name, feeder in feeders.items():
        check_replay(name, feeder.buffer, feeders[SB3].buffer, MINIBATCH)
    calls: dict[str, Callable[[], None]] = {}
    for name, feeder in feeders.items():
        calls[f"prepare {name}"] = partial(feeder.prepare, turned)
        calls[name] = feeder.add
    medians = interleaved_medians(calls, rounds)
    for name, feeder in feeders.items():
        check_replay(name, feeder.buffer, feeders[SB3].buffer, MINIBATCH)
    return {name: medians[name] / TRANSITIONS_PER_CALL for name in feeders}


def _sample(buffers: dict[str, ReplayBuffer], batch_size: int, rounds: int) -> dict[str, float]:
    def sample(buffer: ReplayBuffer) -> None:
        buffer.sample(batch_size)

    return interleaved_medians({name: partial(sample, buffer) for name, buffer in buffers.items()}, rounds)


def _get(observations: NDArray[np.uint8], names: Sequence[str], settings: Settings) -> dict[str, float]:
    rollouts = make_rollouts(names, observations, settings.threads)
    for name, rollout in rollouts.items():
        check_rollout(name, rollout, rollouts[SB3], MINIBATCH)

    def get(rollout: RolloutBuffer) -> None:
        for _ in rollout.get(MINIBATCH):
            pass

    calls: dict[str, Any] = {name: partial(get, rollout) for name, rollout in rollouts.items()}
    batches = ROLLOUT_STEPS * ROLLOUT_ENVS // MINIBATCH
    return {name: duration / batches for name, duration in interleaved_medians(calls, settings.rounds).items()}


def measure_game(
    game: str, names: list[str], settings: Settings, frames: int, transitions: int
) -> tuple[Timings, dict[str, int]]:
    """Timings of all buffers, and the resident memory of each.

    :param game: the game
    :param names: codecs and frame layouts; Stable-Baselines3's buffer is added
    :param settings: how to measure
    :param frames: number of observations to play; larger buffers repeat them
    :param transitions: size of the buffers whose resident memory is measured
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


def resident_of_replay(path: str, codec: str, transitions: int) -> int:
    """Fill a buffer and return the growth of the process in bytes, without libraries.

    :param path: ``.npy`` file of observations of shape ``(n, 4, 84, 84)``; they are repeated as needed
    :param codec: name of a codec, or ``"SB3"``
    :param transitions: size of the buffer
    """
    # Mapped, so that the observations do not count as memory.
    observations = np.asarray(np.load(path, mmap_mode="r"))
    # A small buffer first, so that libraries and compiled code do not count.
    small = make_replay(codec, 64 * _ENVIRONMENTS, _ENVIRONMENTS)
    fill_replay(small, Transitions(observations, _ENVIRONMENTS))
    small.sample(32)
    del small
    before = resident_nbytes()
    buffer = make_replay(codec, transitions, _ENVIRONMENTS)
    fill_replay(buffer, Transitions(observations, _ENVIRONMENTS))
    return resident_nbytes() - before


def buffer_tables(title: str, timings: Timings, resident: Mapping[str, int], transitions: int) -> Group:
    """Tables of memory and reading, and of adding: one row per codec, Stable-Baselines3's buffer first.

    :param title: title of the tables
    :param timings: timings of all codecs
    :param resident: resident bytes by codec
    :param transitions: number of transitions in these bytes
    """
    reading = _table(["\nsmaller", "resident\nMB", "of\nSB3's"], _READING)
    adding = _table([], _ADDING)
    for name, ratio in timings.ratios.items():
        sizes = [f"{ratio:.1f}", f"{resident[name] / 1e6:,.1f}", f"{resident[name] / resident[SB3]:.1%}"]
        reading.add_row(name, *sizes, *_durations(timings, name, _READING))
        adding.add_row(name, *_durations(timings, name, _ADDING))
    reading.title, adding.caption = title, _CAPTION.format(transitions=transitions)
    return Group(reading, adding)


def _table(headings: list[str], operations: Mapping[str, tuple[str, float]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.title_justify = table.caption_justify = "left"
    table.add_column("\ncodec", no_wrap=True)
    for heading, _ in operations.values():
        headings += [heading, "to\nSB3"]
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _durations(timings: Timings, name: str, operations: Mapping[str, tuple[str, float]]) -> list[str]:
    row = []
    for operation, (_, unit) in operations.items():
        duration = timings.seconds[operation][name] * unit
        row += [f"{duration:.{1 if duration >= 10 else 2}f}", f"{timings.to_sb3(operation, name):.2f}"]
    return row
