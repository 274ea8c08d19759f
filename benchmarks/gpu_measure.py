"""What buffers on a device cost per transition and per batch, beside Stable-Baselines3's own in the same run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.buffers import ReplayBuffer

from benchmarks.buffer_building import SB3, check_replay, fill_replay
from benchmarks.buffer_measure import MINIBATCH, TRANSITIONS_PER_CALL, Feeder, Reporter, Settings, Timings
from benchmarks.gpu_building import make_gpu_replay
from benchmarks.gpu_memory import Memory, memory_of, worse
from benchmarks.timing import interleaved_medians
from benchmarks.transitions import Transitions
from sb3_extra_buffers.gpu_buffers import GpuReplayBuffer

BATCH_SIZES = (32, 256)
ENVIRONMENTS = (1, 8)


def measure_on_device(
    observations: NDArray[np.uint8], names: Sequence[str], settings: Settings, device: th.device, report: Reporter
) -> tuple[Timings, dict[str, Memory]]:
    """Fill buffers with the same content, check that they return the same batches, then time them in turn.

    :param observations: shape ``(n, 4, 84, 84)``
    :param names: codecs and ``"frames"``; Stable-Baselines3's buffer comes along
    :param settings: how to measure
    :param device: where
    :param report: told what is measured next
    """
    seconds: dict[str, dict[str, float]] = {}
    memory: dict[str, Memory] = {}
    contenders: dict[str, _Contender] = {}
    for n_envs in ENVIRONMENTS:
        contenders.clear()  # the plain buffer is large; two of them need not fit
        for name in (SB3, *names):
            report(f"Filling {name}, {n_envs} env{'s' if n_envs > 1 else ''}")
            contenders[name] = _Contender(name, n_envs, settings, device, observations)
        report(f"Timing add, n_envs {n_envs}")
        seconds[f"add_{n_envs}"] = _add(contenders, settings.rounds)
    for batch_size in BATCH_SIZES:
        report(f"Timing sample({batch_size})")
        calls: dict[str, Callable[[], None]] = {}
        for name, contender in contenders.items():
            calls[name] = partial(contender.sample, batch_size)
        seconds[f"sample_{batch_size}"] = interleaved_medians(calls, settings.rounds)
    ratios = {SB3: 1.0}
    for name, contender in contenders.items():
        if isinstance(contender.buffer, GpuReplayBuffer) and contender.memory is not None:
            ratios[name] = contender.buffer.memory_report().ratio
            memory[name] = contender.memory
    return Timings(seconds, ratios), memory


class _Contender:
    """A full buffer, and what comes next for it. What is timed ends when the device is done."""

    def __init__(
        self, name: str, n_envs: int, settings: Settings, device: th.device, observations: NDArray[np.uint8]
    ) -> None:
        self._device = device
        before = self._allocated()
        self.buffer: ReplayBuffer = make_gpu_replay(name, settings.transitions, n_envs, device, settings.threads)
        source = Transitions(observations, n_envs)
        fill_replay(self.buffer, source)
        self._feeder = Feeder(self.buffer, source)
        after = self._allocated()
        self._device_nbytes = None if before is None or after is None else after - before
        #: At the worst moment since the buffer was full.
        self.memory: Memory | None = None

    def prepare(self) -> None:
        """Make new arrays and look at the memory, outside of what is timed: that is the work of others."""
        if isinstance(self.buffer, GpuReplayBuffer):
            self.memory = worse(self.memory, memory_of(self.buffer, self._device_nbytes))
        self._feeder.prepare()

    def add(self) -> None:
        """Store what was prepared."""
        self._feeder.add()
        self._synchronise()

    def sample(self, batch_size: int) -> None:
        """Make one batch, and wait until it is there."""
        self.buffer.sample(batch_size)
        self._synchronise()

    def _synchronise(self) -> None:
        if self._device.type == "cuda":
            th.cuda.synchronize(self._device)
        elif self._device.type == "mps":
            th.mps.synchronize()

    def _allocated(self) -> int | None:
        return th.cuda.memory_allocated(self._device) if self._device.type == "cuda" else None


def _add(contenders: dict[str, _Contender], rounds: int) -> dict[str, float]:
    _check(contenders)
    calls: dict[str, Callable[[], None]] = {}
    for name, contender in contenders.items():
        calls[f"prepare {name}"] = contender.prepare
        calls[name] = contender.add
    medians = interleaved_medians(calls, rounds)
    _check(contenders)
    return {name: medians[name] / TRANSITIONS_PER_CALL for name in contenders}


def _check(contenders: dict[str, _Contender]) -> None:
    for name, contender in contenders.items():
        check_replay(name, contender.buffer, contenders[SB3].buffer, MINIBATCH)
