"""``advise``: measure ways to store a stream, choose one, and write it as lines for a training script."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sb3_extra_buffers import heaps
from sb3_extra_buffers.advisor.measurement import RAW, Measured, candidates, measure, stores_frames
from sb3_extra_buffers.advisor.shortlist import (
    ANY_TIME,
    ROWS,
    Dropped,
    Failed,
    Screened,
    screen,
    shortlist,
    slowest_encode_s,
    specs,
)
from sb3_extra_buffers.advisor.stream import Stream
from sb3_extra_buffers.codecs import CellSpec
from sb3_extra_buffers.compressed.options import CELLS, FRAMES
from sb3_extra_buffers.errors import ExtraBuffersError, ParameterError
from sb3_extra_buffers.progress import progress_bar
from sb3_extra_buffers.stores.auto import BALANCED, MEMORY, MIN_NBYTES, SPEED, pays

_BATCH, _ROUNDS, _SHORTLISTED = 32, 40, 5
#: Why no codec was tried.
TOO_SMALL = f"too small to be tried (under {MIN_NBYTES} bytes)"
_UNTRIED = f"observations are {TOO_SMALL}"
#: Allowed time as a multiple of that of the fastest way, by preference.
_TOLERATED = {SPEED: 1.25, BALANCED: 2.0, MEMORY: float("inf")}
#: Between ways with nearly the same memory, the one with the fewest options wins.
_NEARLY = 1.05
#: As the DQN of Stable-Baselines3 trains: a batch for every fourth step.
STEPS_PER_SAMPLE = 4
#: Capacity of a file relative to the measured size: a good player sees more than a random one, and a ring has gaps.
_MARGIN = 1.25
#: Capacities are rounded up to a multiple of this.
_ROUNDED = 1_000_000


@dataclass(frozen=True)
class Verdict:
    """The recommended way to store.

    :param chosen: the way to store; Stable-Baselines3's own buffer if compression does not pay
    :param compress: whether compression pays
    :param reason: in a sentence
    :param front: the Pareto front of memory and time
    """

    chosen: Measured
    compress: bool
    reason: str
    front: tuple[Measured, ...]


def decide(measured: Sequence[Measured], transitions: int, prefer: str = SPEED, tried: bool = True) -> Verdict:
    """Choose the smallest of the ways that save enough and are nearly as fast as the fastest of them.

    :param measured: the first is Stable-Baselines3's own buffer
    :param tried: whether any codec was tried; observations may be too small for that
    """
    check_preference(prefer)
    plain, *others = measured
    sizes = {one.candidate.name: one.nbytes(transitions) for one in measured}
    factors = {name: sizes[plain.candidate.name] / size for name, size in sizes.items()}
    front = pareto_front(measured, transitions)
    saving = [one for one in others if pays(factors[one.candidate.name])]
    if not saving:
        best = max((factors[one.candidate.name] for one in others), default=1.0)
        reason = f"Do not compress: at best, the buffer would be {best:.2f} times smaller."
        if best < _NEARLY:
            reason = "Do not compress: nothing makes the buffer smaller." if tried else f"Do not compress: {_UNTRIED}."
        return Verdict(plain, False, reason, front)
    limit = min(map(cost_s, saving)) * _TOLERATED[prefer]
    affordable = [one for one in saving if cost_s(one) <= limit]
    smallest = min(sizes[one.candidate.name] for one in affordable)
    equals = [one for one in affordable if sizes[one.candidate.name] <= smallest * _NEARLY]
    chosen = min(equals, key=lambda one: (len(one.candidate.options), sizes[one.candidate.name]))
    factor, speed = factors[chosen.candidate.name], cost_s(chosen) / cost_s(plain)
    smaller = f"{factor:,.0f}" if factor >= 10 else f"{factor:.1f}"
    reason = f"{smaller} times smaller than Stable-Baselines3's buffer, in {speed:.2f} of its time."
    if chosen.stored_as == RAW:
        why = "No codec makes the observations smaller" if tried else _UNTRIED.capitalize()
        reason += f" {why}; memory is saved because next observations are stored once."
    return Verdict(chosen, True, reason, front)


def check_preference(prefer: str) -> None:
    """Refuse an unknown preference.

    :param prefer: ``"speed"``, ``"balanced"`` or ``"memory"``
    """
    if prefer not in _TOLERATED:
        raise ParameterError("advise", "prefer", prefer, f"it must be one of: {', '.join(_TOLERATED)}")


def cost_s(one: Measured) -> float:
    """Seconds per transition of a training run: one ``add``, and a share of a batch."""
    return one.add_s + one.sample_s / STEPS_PER_SAMPLE


def pareto_front(measured: Sequence[Measured], transitions: int) -> tuple[Measured, ...]:
    """Ways that no other beats in both memory and time, the smallest first."""
    front: list[Measured] = []
    for one in sorted(measured, key=lambda one: (one.nbytes(transitions), cost_s(one))):
        if not front or cost_s(one) < cost_s(front[-1]):
            front.append(one)
    return tuple(front)


def _lines(stream: Stream, options: Mapping[str, Any]) -> list[str]:
    """An import, and arguments of an algorithm. JSON writes these options as Python does."""
    kind = stream.buffer_class.__name__
    arguments = f"replay_buffer_class={kind}"
    if options:
        arguments += f", replay_buffer_kwargs={json.dumps(dict(options))}"
    return [f"from sb3_extra_buffers.compressed import {kind}", arguments]


def options_in_a_file(stream: Stream, chosen: Measured, transitions: int, folder: str) -> dict[str, Any] | None:
    """Arguments of a buffer that stores the same in a file of limited size; ``None`` without a heap for that."""
    heap = _file_heap()
    if heap is None:
        return None
    name, folder_parameter = heap
    options = dict(chosen.candidate.options)
    if stores_frames(stream) and chosen.stored_as != FRAMES and "prefer" not in options:
        options["layout"] = CELLS  # in a file, "auto" would store images as frames that it stores as cells in memory
    capacity = math.ceil(_MARGIN * chosen.nbytes(transitions) / _ROUNDED) * _ROUNDED
    return {**options, "heap": name, "heap_kwargs": {folder_parameter: folder, "capacity": capacity}}


def _file_heap() -> tuple[str, str] | None:
    """The name of an installed heap that stores payloads in a folder, and its parameter for the folder."""
    for name in heaps.names():
        try:
            plugin = heaps.registry.load(name)
        except ExtraBuffersError:
            continue
        if plugin.fits_worst_case and plugin.local:
            return name, plugin.local[0]
    return None


@dataclass(frozen=True)
class Advice:
    """Measurements on a stream, and the recommendation.

    :param stream: what was stored
    :param transitions: the planned size of the buffer
    :param batch_size: of a sample
    :param measured: ways to store that were measured in a buffer; the first is Stable-Baselines3's own
    :param screened: codecs and levels that were tried on some observations
    :param dropped: those of them that were not measured in a buffer, and why
    :param failed: codecs and layouts that cannot be loaded or failed on the observations, and why
    :param tried: whether codecs were tried at all; on small observations, only those that the user names are
    :param verdict: the recommendation
    """

    stream: Stream
    transitions: int
    batch_size: int
    measured: tuple[Measured, ...]
    screened: tuple[Screened, ...]
    dropped: tuple[Dropped, ...]
    failed: tuple[Failed, ...]
    tried: bool
    verdict: Verdict

    @property
    def plain(self) -> Measured:
        """Stable-Baselines3's own buffer."""
        return self.measured[0]

    @property
    def ranked(self) -> list[Measured]:
        """All measured ways, the smallest first."""
        return sorted(self.measured, key=lambda one: one.nbytes(self.transitions))

    @property
    def lines(self) -> list[str]:
        """Lines for a training script; empty if compression does not pay."""
        return _lines(self.stream, self.verdict.chosen.candidate.options) if self.verdict.compress else []

    def lines_in_a_file(self, folder: str) -> list[str]:
        """Lines for a buffer that stores its payloads in a file; empty if no installed heap does that.

        :param folder: where to put the file
        """
        options = options_in_a_file(self.stream, self.verdict.chosen, self.transitions, folder)
        return _lines(self.stream, options) if self.verdict.compress and options is not None else []

    def as_json(self) -> dict[str, Any]:
        """All measurements, as JSON takes them."""
        plain = self.plain
        return {
            "stream": {
                "label": self.stream.label,
                "observation_space": str(self.stream.observation_space),
                "n_envs": self.stream.n_envs,
                "transitions": self.stream.transitions,
            },
            "planned_transitions": self.transitions,
            "batch_size": self.batch_size,
            "recommended": self.verdict.chosen.candidate.name,
            "compress": self.verdict.compress,
            "reason": self.verdict.reason,
            "lines": self.lines,
            "measured": [
                {
                    "name": one.candidate.name,
                    "options": dict(one.candidate.options),
                    "stored_as": one.stored_as,
                    "codec": one.codec,
                    "nbytes": round(one.nbytes(self.transitions)),
                    "nbytes_per_transition": round(one.nbytes_per_transition, 2),
                    "times_smaller": plain.nbytes(self.transitions) / one.nbytes(self.transitions),
                    "add_us": 1e6 * one.add_s,
                    "add_to_sb3": one.add_s / plain.add_s,
                    "sample_ms": 1e3 * one.sample_s,
                    "sample_to_sb3": one.sample_s / plain.sample_s,
                    "cost_to_sb3": cost_s(one) / cost_s(plain),
                    "on_pareto_front": one in self.verdict.front,
                }
                for one in self.ranked
            ],
            "screened": [
                {
                    "codec": str(one.spec),
                    "times_smaller": one.ratio,
                    "encode_us": 1e6 * one.encode_s,
                    "decode_us": 1e6 * one.decode_s,
                }
                for one in self.screened
            ],
            "dropped": {str(one.spec): one.reason for one in self.dropped},
            "failed": {one.name: one.reason for one in self.failed},
        }


def advise(
    stream: Stream,
    transitions: int = 1_000_000,
    *,
    prefer: str = SPEED,
    codecs: Sequence[str] | None = None,
    batch_size: int = _BATCH,
    rounds: int = _ROUNDS,
    progress: bool = True,
) -> Advice:
    """Try every installed codec, level and layout on real observations, and recommend one.

    Every codec and level is tried on some observations first. The best of them are measured in buffers, as are all
    preferences for frames, ``"auto"``, and Stable-Baselines3's own buffer.

    :param stream: from ``play`` or ``read``
    :param transitions: the planned size of the buffer
    :param prefer: ``"speed"``, ``"balanced"`` or ``"memory"``
    :param codecs: codecs to try, as users write them, however slow they are; ``None`` tries all that are installed
    :param batch_size: of a sample
    :param rounds: number of timings of adding and sampling
    :param progress: whether to show a bar on a terminal
    """
    for name, value in (("transitions", transitions), ("batch_size", batch_size), ("rounds", rounds)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ParameterError("advise", name, value, "it must be an integer of at least 1")
    check_preference(prefer)
    wanted, failed = specs(codecs)
    key, cell = _largest(stream)
    tried = codecs is not None or cell.nbytes >= MIN_NBYTES  # the limit of "auto", too
    screened: list[Screened] = []
    if tried:
        with progress_bar("Trying codecs", len(wanted), progress) as advance:
            screened, broken = screen(wanted, cell, stream.rows(key, ROWS), advance)
        failed += broken
    limit = ANY_TIME if codecs is not None or prefer == MEMORY else slowest_encode_s(cell.nbytes)
    best, dropped = shortlist(screened, _SHORTLISTED, limit)
    chosen = candidates(stream, best)
    with progress_bar("Filling buffers", len(chosen) + rounds, progress) as advance:
        measured, refused = measure(stream, chosen, batch_size, rounds, advance)
    failed += refused
    if len(measured) == 1:
        problem = "; ".join(f"{one.name}: {one.reason}" for one in refused)
        allowed = f"no buffer but Stable-Baselines3's own returned them ({problem})"
        raise ParameterError("advise", "observations", stream.label, allowed, "Run: sb3-buffers doctor")
    verdict = decide(measured, transitions, prefer, tried)
    found = tuple(measured), tuple(screened), tuple(dropped), tuple(failed)
    return Advice(stream, transitions, batch_size, *found, tried, verdict)


def _largest(stream: Stream) -> tuple[str, CellSpec]:
    """The key with the largest observations, on which codecs are tried, and its cell."""
    cells = {}
    for key, space in stream.spaces.items():
        assert space.shape is not None
        assert space.dtype is not None
        cells[key] = CellSpec(space.dtype, max(1, int(np.prod(space.shape))))
    key = max(cells, key=lambda name: cells[name].nbytes)
    return key, cells[key]
