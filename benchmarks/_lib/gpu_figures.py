"""Time and memory of buffers on a device, beside Stable-Baselines3's in the same run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch as th
from numpy.typing import NDArray
from rich import box
from rich.table import Table
from stable_baselines3.common.buffers import ReplayBuffer

from benchmarks._lib.atari import ACTION_SPACE, OBSERVATION_SPACE, Transitions
from benchmarks._lib.buffer_figures import MINIBATCH, TRANSITIONS_PER_CALL, Feeder, Reporter, Settings, Timings
from benchmarks._lib.buffers import SB3, check_replay, fill_replay
from benchmarks._lib.measure import interleaved_medians
from benchmarks._lib.plotting import LEARNT, OURS, SUBTLE, TEXT, write_figure
from benchmarks._lib.plotting import SB3 as PLAIN
from sb3_extra_buffers.gpu_buffers import GpuReplayBuffer

#: Name of the frame layout among the codecs.
FRAMES = "frames"
CONTENDERS = ("none", "rle", "zstd-5", "lz4-block/1", FRAMES)
#: Largest ratio of held to live bytes, besides one step.
HELD_GOAL = 1.1
BATCH_SIZES = (32, 256)
ENVIRONMENTS = (1, 8)
#: Largest ratio of ``sample(256)`` to Stable-Baselines3's buffer, for batches that the host decodes.
SAMPLE_GOALS = {"rle": 3.0, "zstd-5": 3.0}
#: Heading and factor of the seconds, by operation.
_OPERATIONS = {
    "add_1": ("add µs\n1 env", 1e6),
    "add_8": ("add µs\n8 envs", 1e6),
    "sample_32": ("sample ms\n32", 1e3),
    "sample_256": ("sample ms\n256", 1e3),
}
_CAPTION = (
    "Medians, and how many times as long as SB3's buffer in the same run: add per transition into a full buffer,\n"
    "sample from a buffer of 8 environments. On a device, until it is done.\n"
    "smaller: size of the raw observations and next observations, divided by the stored size.\n"
    "live: payloads. held: memory of the heap, with free space, index and staging area, at its maximum."
)
_DRAWN = {"add_8": "add, 8 environments", "sample_256": "sample(256)"}


def make_gpu_replay(name: str, transitions: int, n_envs: int, device: th.device, threads: int | None) -> ReplayBuffer:
    """An empty replay buffer.

    :param name: name of a codec, ``"frames"``, or ``"SB3"``, whose observations are on the host
    :param transitions: size of the buffer
    :param n_envs: number of environments
    :param device: device of the batches, and of our observations
    :param threads: threads that decode on the host; ``None`` for the automatic choice
    """
    if name == SB3:
        return ReplayBuffer(transitions, OBSERVATION_SPACE, ACTION_SPACE, device, n_envs)
    storage: dict[str, Any] = {"compression_method": name, "layout": "cells"}
    if name == FRAMES:
        storage = {"compression_method": "auto", "layout": "frames"}
    return GpuReplayBuffer(transitions, OBSERVATION_SPACE, ACTION_SPACE, device, n_envs, threads=threads, **storage)


@dataclass(frozen=True)
class Memory:
    """The heap of one buffer at one moment.

    :param live: payload bytes, without alignment
    :param held: bytes of the heap: blocks, index, staging area
    :param row: bytes of one uncompressed step, the size of the staging area
    :param device: growth of torch's allocated memory on the device; ``None`` except on CUDA
    """

    live: int
    held: int
    row: int
    device: int | None

    @property
    def held_to_live(self) -> float:
        """Ratio of held to live bytes."""
        return self.held / self.live

    @property
    def is_tight(self) -> bool:
        """Whether the goal is reached."""
        return self.held <= HELD_GOAL * self.live + self.row

    def as_json(self) -> dict[str, object]:
        """As JSON."""
        return {**asdict(self), "held_to_live": self.held_to_live, "is_tight": self.is_tight}


def memory_of(buffer: GpuReplayBuffer, device_nbytes: int | None) -> Memory:
    """Memory of a full buffer now.

    :param buffer: the buffer
    :param device_nbytes: growth of the memory on the device while it was filled
    """
    heap = buffer.shared_heap
    assert heap is not None
    row = buffer.n_envs * OBSERVATION_SPACE.dtype.itemsize * math.prod(OBSERVATION_SPACE.shape)
    return Memory(heap.live, heap.nbytes, row, device_nbytes)


def worse(one: Memory | None, other: Memory) -> Memory:
    """The one with the larger ratio of held to live bytes. Segments fill and empty, so the ratio varies."""
    return other if one is None or other.held_to_live > one.held_to_live else one


def measure_on_device(
    observations: NDArray[np.uint8], names: Sequence[str], settings: Settings, device: th.device, report: Reporter
) -> tuple[Timings, dict[str, Memory]]:
    """Fill buffers with the same content, check that they return the same batches, then time them alternately.

    :param observations: shape ``(n, 4, 84, 84)``
    :param names: codecs and ``"frames"``; Stable-Baselines3's buffer is added
    :param settings: how to measure
    :param device: the device
    :param report: called with the name of the next measurement
    """
    seconds: dict[str, dict[str, float]] = {}
    memory: dict[str, Memory] = {}
    contenders: dict[str, _Contender] = {}
    for n_envs in ENVIRONMENTS:
        contenders.clear()  # the plain buffer is large; two of them may not fit
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
    """A full buffer and the following transitions. Timed calls wait for the device."""

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
        #: The maximum since the buffer was full.
        self.memory: Memory | None = None

    def prepare(self) -> None:
        """Make new arrays and measure the memory, untimed."""
        if isinstance(self.buffer, GpuReplayBuffer):
            self.memory = worse(self.memory, memory_of(self.buffer, self._device_nbytes))
        self._feeder.prepare()

    def add(self) -> None:
        """Add the prepared transitions."""
        self._feeder.add()
        self._synchronise()

    def sample(self, batch_size: int) -> None:
        """Sample one batch and wait for the device."""
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


def gpu_table(title: str, timings: Timings, memory: Mapping[str, Memory]) -> Table:
    """One row per codec, Stable-Baselines3's buffer first.

    :param title: title of the table
    :param timings: timings of all codecs
    :param memory: memory of all codecs
    """
    table = Table(title=title, caption=_CAPTION, box=box.SIMPLE_HEAD, pad_edge=False)
    table.title_justify = table.caption_justify = "left"
    table.add_column("\ncodec", no_wrap=True)
    headings = ["\nsmaller", "live\nMB", "held\nMB", "to\nlive"]
    has_device = any(part.device is not None for part in memory.values())
    if has_device:
        headings.append("device\nMB")
    for heading, _ in _OPERATIONS.values():
        headings += [heading, "to\nSB3"]
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for name, ratio in timings.ratios.items():
        row = [f"{ratio:.1f}", *_sizes(memory.get(name), has_device)]
        for operation, (_, unit) in _OPERATIONS.items():
            duration = timings.seconds[operation][name] * unit
            row += [f"{duration:.{1 if duration >= 10 else 2}f}", f"{timings.to_sb3(operation, name):.2f}"]
        table.add_row(name, *row)
    return table


def _sizes(memory: Memory | None, has_device: bool) -> list[str]:
    if memory is None:
        return [""] * (4 if has_device else 3)
    found = [f"{memory.live / 1e6:,.1f}", f"{memory.held / 1e6:,.1f}", f"{memory.held_to_live:.2f}"]
    return [*found, f"{memory.device / 1e6:,.1f}" if memory.device is not None else ""] if has_device else found


def goals(timings: Timings, memory: Mapping[str, Memory]) -> Iterator[str]:
    """One line for each goal and whether it is reached.

    :param timings: timings of all codecs
    :param memory: memory of all codecs
    """
    for name, limit in SAMPLE_GOALS.items():
        if name in timings.ratios:
            ratio = timings.to_sb3("sample_256", name)
            verdict = "reached" if ratio <= limit else "missed"
            yield f"{name}, sample(256): {ratio:.2f} times SB3's, goal at most {limit:g}: {verdict}"
    for name, part in memory.items():
        verdict = "reached" if part.is_tight else "missed"
        found = f"{part.held_to_live:.3f} times the live bytes"
        yield f"{name}, held: {found}, goal at most {HELD_GOAL:g} and one step: {verdict}"


def draw_device(timings: Timings, memory: Mapping[str, Memory], title: str, file: Path) -> None:
    """Draw add, sample and memory, with a bar for each codec.

    :param timings: timings of all codecs
    :param memory: memory of all codecs
    :param title: title of the picture
    :param file: the picture, .svg or .png
    """
    from matplotlib.figure import Figure

    names = [name for name in timings.ratios if name != SB3]
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    panels = figure.subplots(1, len(_DRAWN) + 2)
    for axes, (operation, label) in zip(panels, _DRAWN.items()):
        axes.barh(names, [timings.to_sb3(operation, name) for name in names], color=OURS)
        axes.axvline(1, color=PLAIN, linewidth=1.5)
        axes.set_title(f"{label}\ntimes SB3's", color=TEXT, fontsize=10)
    smaller, held = panels[len(_DRAWN) :]
    smaller.barh(names, [timings.ratios[name] for name in names], color=OURS)
    smaller.set_xscale("log")
    smaller.set_xlim(left=1)
    smaller.set_title("observations\ntimes smaller than SB3's", color=TEXT, fontsize=10)
    held.barh(names, [memory[name].held_to_live for name in names], color=OURS)
    held.axvline(HELD_GOAL, color=LEARNT, linewidth=1.5, linestyle="--")
    held.set_title("held by the heap\ntimes the live bytes", color=TEXT, fontsize=10)
    for axes in panels:
        axes.invert_yaxis()
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(colors=SUBTLE, labelleft=axes is panels[0])
        axes.grid(axis="x", alpha=0.25)
    figure.suptitle(title, color=TEXT, fontsize=11)
    write_figure(figure, file)
