"""``advise``: measure ways to store a stream, choose one, and write it as lines for a training script."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sb3_extra_buffers import heaps
from sb3_extra_buffers.advisor import measurement
from sb3_extra_buffers.advisor.measurement import Dropped, Failed, Measured, Screened
from sb3_extra_buffers.advisor.stream import Stream, cell_of
from sb3_extra_buffers.compressed.options import CELLS, FRAMES
from sb3_extra_buffers.compressed.report import readable
from sb3_extra_buffers.doctor.report import columns
from sb3_extra_buffers.errors import ExtraBuffersError, ParameterError
from sb3_extra_buffers.progress import progress_bar
from sb3_extra_buffers.stores.auto import AUTO, BALANCED, MEMORY, MIN_NBYTES, SPEED, pays, preference

#: Observations to try a codec on, and codecs that are measured in buffers.
_ROWS, _SHORTLISTED = 48, 5
#: Why no codec was tried.
_TOO_SMALL = f"too small to be tried (under {MIN_NBYTES} bytes)"
_UNTRIED = f"observations are {_TOO_SMALL}"
#: The rule by which "auto" stores observations.
_RULE = f"the least memory times sampling time, by the first observations; under {MIN_NBYTES} bytes, no codec"
#: A longer list of names is replaced by its length.
_MAX_NAMES = 8
_NUMBERS = ("memory", "smaller", "add, us", "sample, ms", "time")
#: Between ways that are nearly equal, the one with the fewest options wins.
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

    :param chosen: Stable-Baselines3's own buffer, if it does not pay to ``compress``
    :param front: the Pareto front of memory and time
    """

    chosen: Measured
    compress: bool
    reason: str
    front: tuple[Measured, ...]


def decide(measured: Sequence[Measured], transitions: int, prefer: str = BALANCED, tried: bool = True) -> Verdict:
    """Choose one of the ways that save enough: with the least memory times time, with the least memory of those that
    take at most Stable-Baselines3's time, or with the least memory.

    The first of the ways is Stable-Baselines3's own buffer. No codec is tried on observations that are too small.
    """
    check_preference(prefer)
    plain, *others = measured
    front = pareto_front(measured, transitions)

    def factor(one: Measured) -> float:
        return plain.nbytes(transitions) / one.nbytes(transitions)

    saving = [one for one in others if pays(factor(one))]
    if not saving:
        best = max(map(factor, others), default=1.0)
        reason = f"Do not compress: at best, the buffer would be {best:.2f} times smaller."
        if best < _NEARLY:
            reason = "Do not compress: nothing makes the buffer smaller." if tried else f"Do not compress: {_UNTRIED}."
        return Verdict(plain, False, reason, front)
    if prefer == SPEED:
        saving = [one for one in saving if cost_s(one) <= cost_s(plain)] or [min(saving, key=cost_s)]

    def score(one: Measured) -> float:
        return one.nbytes(transitions) * (cost_s(one) if prefer == BALANCED else 1)

    limit = min(map(score, saving)) * _NEARLY
    equals = [one for one in saving if score(one) <= limit]
    chosen = min(equals, key=lambda one: (len(one.candidate.options), score(one)))
    smaller, speed = _times(factor(chosen)), cost_s(chosen) / cost_s(plain)
    reason = f"{smaller} times smaller than Stable-Baselines3's buffer, in {speed:.2f} of its time."
    if chosen.stored_as == measurement.RAW:
        why = "No codec makes the observations smaller" if tried else _UNTRIED.capitalize()
        reason += f" {why}; memory is saved because next observations are stored once."
    return Verdict(chosen, True, reason, front)


def check_preference(prefer: str) -> None:
    """Refuse a preference other than ``"speed"``, ``"balanced"`` and ``"memory"``."""
    preference("advise", prefer)


def _times(factor: float) -> str:
    """A factor as text; small ones with a decimal."""
    return f"{factor:,.0f}" if factor >= 10 else f"{factor:.1f}"


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
    given = f", replay_buffer_kwargs={json.dumps(dict(options))}" if options else ""
    return [f"from sb3_extra_buffers.compressed import {kind}", f"replay_buffer_class={kind}{given}"]


def options_in_a_file(stream: Stream, chosen: Measured, transitions: int, folder: str) -> dict[str, Any] | None:
    """Arguments of a buffer that stores the same in a file of limited size; ``None`` without a heap for that."""
    for name in heaps.names():
        with suppress(ExtraBuffersError):
            plugin = heaps.registry.load(name)
            if plugin.fits_worst_case and plugin.local:
                break
    else:
        return None
    options = dict(chosen.candidate.options)
    if measurement.stores_frames(stream) and chosen.stored_as != FRAMES:
        options["layout"] = CELLS  # in a file, "auto" would store images as frames that it stores as cells in memory
    capacity = math.ceil(_MARGIN * chosen.nbytes(transitions) / _ROUNDED) * _ROUNDED
    return {**options, "heap": name, "heap_kwargs": {plugin.local[0]: folder, "capacity": capacity}}


@dataclass(frozen=True)
class Advice:
    """Measurements on a stream, and the recommendation.

    :param transitions: the planned size of the buffer
    :param measured: ways to store that were measured in a buffer; the first is Stable-Baselines3's own
    :param screened: codecs and levels that were tried on some observations
    :param dropped: those of them that were not measured in a buffer, and why
    :param failed: codecs and layouts that cannot be loaded or failed on the observations, and why
    :param tried: whether codecs were tried at all; on small observations, only those that the user names are
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
        """Lines for a buffer that stores its payloads in a file in this folder; empty if no installed heap does."""
        options = options_in_a_file(self.stream, self.verdict.chosen, self.transitions, folder)
        return _lines(self.stream, options) if self.verdict.compress and options is not None else []

    def __str__(self) -> str:
        """The measurements as a table, and the recommendation."""
        stream, verdict = self.stream, self.verdict
        tried = "no codec worked" if self.failed else "no codec tried"
        if self.screened:
            tried = f"{len(self.screened)} codecs and levels tried"
        elif not self.tried:
            tried = _TOO_SMALL
        rows = [("  stored as", *_NUMBERS)]
        for one in self.as_json()["measured"]:
            name = f"{'*' if one['on_pareto_front'] else ' '} {one['name']}"
            add, sample = f"{one['add_us']:,.1f} ({one['add_to_sb3']:.2f})", f"{one['sample_ms']:.3f}"
            sample += f" ({one['sample_to_sb3']:.2f})"
            smaller = f"{_times(one['times_smaller'])}x"
            rows.append((name, readable(one["nbytes"]), smaller, add, sample, f"{one['cost_to_sb3']:.2f}"))
        lines = [
            f"{stream.label}: {' '.join(str(stream.observation_space).split())}",
            f"{stream.transitions:,} transitions, {tried}, {len(self.measured)} buffers measured.\n",
            *columns(rows, right=range(1, len(rows[0]))),
            f"\nmemory: of {self.transitions:,} transitions, extrapolated. In brackets: times Stable-Baselines3's own.",
            f"time: of add and, every 4th step, sample({self.batch_size}), relative to Stable-Baselines3's.",
            "*: nothing else is better in both memory and time.",
        ]
        for auto in (one for one in self.measured if one.candidate.name == AUTO):
            lines += [f"auto: {auto.codec}.", f"Rule of auto: {_RULE}."]
            lines += [f"Choice{key and f' for {key}'}: {choice}." for key, choice in auto.choices.items()]
        for reason in dict.fromkeys(one.reason for one in self.dropped):
            names = [str(one.spec) for one in self.dropped if one.reason == reason]
            several = f"{len(names)} codecs and levels" if len(names) > _MAX_NAMES else ", ".join(names)
            lines.append(f"In no buffer: {several}: {reason}.")
        lines += [f"\nFailed: {one.name}: {one.reason}" for one in self.failed]
        if verdict.compress:
            lines.append(f"\nRecommended: {verdict.chosen.candidate.name}. {verdict.reason}\n")
            lines += [f"    {line}" for line in self.lines]
        else:
            lines.append(f"\n{verdict.reason} Keep Stable-Baselines3's own {stream.plain_class.__name__}.")
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """All measurements, as JSON takes them."""
        plain, stream = self.plain, self.stream
        label = {"label": stream.label, "observation_space": str(stream.observation_space)}
        return {
            "stream": {**label, "n_envs": stream.n_envs, "transitions": stream.transitions},
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
    prefer: str = BALANCED,
    codecs: Sequence[str] | None = None,
    batch_size: int = 32,
    rounds: int = 40,
    progress: bool = True,
) -> Advice:
    """Try every installed codec, level and layout on real observations, and recommend one.

    Every codec and level is tried on some observations first. The best of them are measured in buffers, as are all
    preferences for frames, ``"auto"``, and Stable-Baselines3's own buffer.

    :param stream: from ``play`` or ``read``
    :param transitions: the planned size of the buffer
    :param prefer: ``"speed"``, ``"balanced"`` or ``"memory"``
    :param codecs: codecs to try, as users write them, however slow they are; ``None`` tries all that are installed
    :param rounds: number of timings of adding and sampling
    :param progress: whether to show a bar on a terminal
    """
    for name, value in (("transitions", transitions), ("batch_size", batch_size), ("rounds", rounds)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ParameterError("advise", name, value, "it must be an integer of at least 1")
    check_preference(prefer)
    wanted, failed = measurement.specs(codecs)
    cells = {key: cell_of(space) for key, space in stream.spaces.items()}
    key, cell = max(cells.items(), key=lambda item: item[1].nbytes)  # codecs are tried on the largest observations
    tried = codecs is not None or cell.nbytes >= MIN_NBYTES  # the limit of "auto", too
    screened: list[Screened] = []
    if tried:
        with progress_bar("Trying codecs", len(wanted), progress) as advance:
            screened, broken = measurement.screen(wanted, cell, stream.rows(key, _ROWS), advance)
        failed += broken
    limit = math.inf if codecs is not None or prefer == MEMORY else measurement.slowest_encode_s(cell.nbytes)
    best, dropped = measurement.shortlist(screened, _SHORTLISTED, limit)
    chosen = measurement.candidates(stream, best)
    with progress_bar("Filling buffers", len(chosen) + rounds, progress) as advance:
        measured, refused = measurement.measure(stream, chosen, batch_size, rounds, advance)
    if len(measured) == 1:
        problem = "; ".join(f"{one.name}: {one.reason}" for one in refused)
        allowed = f"no buffer but Stable-Baselines3's own returned them ({problem})"
        raise ParameterError("advise", "observations", stream.label, allowed, "Run: sb3-buffers doctor")
    verdict = decide(measured, transitions, prefer, tried)
    found = tuple(measured), tuple(screened), tuple(dropped), (*failed, *refused)
    return Advice(stream, transitions, batch_size, *found, tried, verdict)
