"""What buffers cost per transition and per batch, beside Stable-Baselines3's own in the same run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.buffers import ReplayBuffer, RolloutBuffer

from benchmarks.buffer_building import (
    ROLLOUT_ENVS,
    ROLLOUT_STEPS,
    SB3,
    check_replay,
    check_rollout,
    fill_replays,
    make_replay,
    make_rollouts,
)
from benchmarks.timing import interleaved_medians
from benchmarks.transitions import Step, Transitions
from sb3_extra_buffers.compressed import BaseCompressedBuffer

#: How many transitions one timed call adds: several batches of what our buffers compress together, so that no call
#: gets away without its share of that work.
TRANSITIONS_PER_CALL = 256
MINIBATCH = 256

#: Told what is measured next.
Reporter = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """How to measure.

    :param transitions: how many each replay buffer holds
    :param rounds: how often each operation is timed
    :param threads: on how many threads our buffers decode; ``None`` uses as many as pay
    """

    transitions: int
    rounds: int
    threads: int | None


@dataclass(frozen=True)
class Timings:
    """By operation, then by codec: seconds, per transition for ``add``, per batch for ``sample`` and ``get``.

    ``add`` takes arrays in the order of C, ``add_turned`` the views that ``VecTransposeImage`` makes in training.
    """

    seconds: dict[str, dict[str, float]]
    ratios: dict[str, float]

    def to_sb3(self, operation: str, codec: str) -> float:
        """How many times as long as Stable-Baselines3's buffer it takes."""
        return self.seconds[operation][codec] / self.seconds[operation][SB3]


def measure_buffers(
    observations: NDArray[np.uint8], codecs: Sequence[str], settings: Settings, report: Reporter
) -> Timings:
    """Fill buffers with the same content, check that they return the same batches, then time them in turn.

    :param observations: shape ``(n, 4, 84, 84)``
    :param codecs: as people type them; Stable-Baselines3's buffer comes along
    :param settings: how to measure
    :param report: told what is measured next
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
    """A full buffer, and what comes next for it.

    :param buffer: was filled
    :param source: goes on from there
    """

    def __init__(self, buffer: ReplayBuffer, source: Transitions) -> None:
        self.buffer, self._source = buffer, source
        self._steps: list[Step] = []

    def prepare(self, turned: bool = False) -> None:
        """Make new arrays, outside of what is timed: that is the environment's work.

        :param turned: whether they are views, as ``VecTransposeImage`` makes them
        """
        steps = [self._source.step() for _ in range(TRANSITIONS_PER_CALL // self.buffer.n_envs)]
        self._steps = [step.turned() for step in steps] if turned else steps

    def add(self) -> None:
        """Store what was prepared."""
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
