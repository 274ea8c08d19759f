"""``advise``: from a stream to one line for the training script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sb3_extra_buffers.advisor.candidates import candidates
from sb3_extra_buffers.advisor.lines import lines, options_in_a_file
from sb3_extra_buffers.advisor.measuring import Measured, measure
from sb3_extra_buffers.advisor.screening import ROWS, Failed, Screened, screen, specs
from sb3_extra_buffers.advisor.selecting import ANY_TIME, Dropped, finalists, slowest_encode_s
from sb3_extra_buffers.advisor.stream import Stream
from sb3_extra_buffers.advisor.verdict import Verdict, check_preference, cost_s, decide
from sb3_extra_buffers.codecs import CellSpec
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.progress import progress_bar
from sb3_extra_buffers.stores import SPEED
from sb3_extra_buffers.stores.choice import choose_by_space
from sb3_extra_buffers.stores.preferences import MEMORY

_BATCH, _ROUNDS, _FINALISTS = 32, 40, 5


@dataclass(frozen=True)
class Advice:
    """What was tried on a stream, what came of it, and what to use.

    :param stream: what was stored
    :param transitions: the size of the buffer that is planned
    :param batch_size: of a sample
    :param measured: every way that went into a buffer; the first is Stable-Baselines3's own
    :param screened: every codec and level that was tried on some observations
    :param dropped: those of them that went into no buffer, and why
    :param failed: what cannot be loaded or failed on the observations, and why
    :param tried: whether codecs were tried at all; on small observations, only those are that were asked for by name
    :param verdict: what to use
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
        """All ways, the smallest first."""
        return sorted(self.measured, key=lambda one: one.nbytes(self.transitions))

    @property
    def lines(self) -> list[str]:
        """What to paste into a training script."""
        return lines(self.stream, self.verdict.chosen.candidate.options) if self.verdict.compress else []

    def lines_in_a_file(self, folder: str) -> list[str]:
        """The same for a buffer that is larger than memory.

        :param folder: where its file goes
        """
        options = options_in_a_file(self.stream, self.verdict.chosen, self.transitions, folder)
        return lines(self.stream, options) if self.verdict.compress else []

    def as_json(self) -> dict[str, Any]:
        """All figures, for files."""
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
    """
    Try every installed codec, level and layout on real observations, and say what to use.

    Every codec and level is tried on some observations first. The best of them go into buffers, as do all ways to
    store frames, what ``"auto"`` chooses, and Stable-Baselines3's own buffer.

    :param stream: what an agent sees, from ``play`` or ``read``
    :param transitions: how large the buffer shall become
    :param prefer: ``"speed"``, ``"balanced"`` or ``"memory"``
    :param codecs: which codecs to try, as people type them, however slow they are; ``None`` tries all that are
        installed
    :param batch_size: of a sample
    :param rounds: how often adding and sampling are timed
    :param progress: whether to show a bar on a terminal
    """
    for name, value in (("transitions", transitions), ("batch_size", batch_size), ("rounds", rounds)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ParameterError("advise", name, value, "it must be an integer of at least 1")
    check_preference(prefer)
    wanted, failed = specs(codecs)
    key, cell = _largest(stream)
    # Of less than that, «auto» does not try to save anything either.
    tried = codecs is not None or choose_by_space(cell) is None
    screened: list[Screened] = []
    if tried:
        with progress_bar("Trying codecs", len(wanted), progress) as advance:
            screened, troubled = screen(wanted, cell, stream.rows(key, ROWS), advance)
        failed += troubled
    is_asked_for = codecs is not None or prefer == MEMORY
    worthy, dropped = finalists(screened, _FINALISTS, ANY_TIME if is_asked_for else slowest_encode_s(cell.nbytes))
    chosen = candidates(stream, worthy)
    with progress_bar("Filling buffers", len(chosen) + rounds, progress) as advance:
        measured, refused = measure(stream, chosen, batch_size, rounds, advance)
    failed += refused
    if len(measured) == 1:
        problem = "; ".join(f"{one.name}: {one.reason}" for one in refused)
        allowed = f"no buffer but Stable-Baselines3's own returned them ({problem})"
        raise ParameterError("advise", "observations", stream.label, allowed, "Run: sb3-buffers doctor")
    verdict = decide(measured, transitions, prefer, tried)
    return Advice(
        stream,
        transitions,
        batch_size,
        tuple(measured),
        tuple(screened),
        tuple(dropped),
        tuple(failed),
        tried,
        verdict,
    )


def _largest(stream: Stream) -> tuple[str, CellSpec]:
    """The key whose observations are largest, by which codecs are judged, and what one of them holds."""
    cells = {}
    for key, space in stream.spaces.items():
        assert space.shape is not None
        assert space.dtype is not None
        cells[key] = CellSpec(space.dtype, max(1, int(np.prod(space.shape))))
    key = max(cells, key=lambda name: cells[name].nbytes)
    return key, cells[key]
