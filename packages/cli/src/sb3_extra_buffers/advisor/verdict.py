"""Which way to store is the right one, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sb3_extra_buffers.advisor.measuring import RAW, Measured
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.stores.judging import MIN_NBYTES, pays
from sb3_extra_buffers.stores.preferences import BALANCED, MEMORY, SPEED

#: Said of observations on which no codec was tried.
TOO_SMALL = f"too small to be tried (under {MIN_NBYTES} bytes)"
#: How many times the time of the fastest way a way may take, by what the user prefers.
_TOLERATED = {SPEED: 1.25, BALANCED: 2.0, MEMORY: float("inf")}
#: Between ways that take nearly the same memory, the one with the shortest line wins.
_NEARLY = 1.05
_UNTRIED = f"observations are {TOO_SMALL}"
#: As the DQN of Stable-Baselines3 trains: a batch for every fourth step.
STEPS_PER_SAMPLE = 4


@dataclass(frozen=True)
class Verdict:
    """What to use.

    :param chosen: the way to store; Stable-Baselines3's own buffer if compression does not pay
    :param compress: whether compression pays
    :param reason: in a sentence
    :param front: ways that nothing else beats in both memory and time
    """

    chosen: Measured
    compress: bool
    reason: str
    front: tuple[Measured, ...]


def decide(measured: Sequence[Measured], transitions: int, prefer: str = SPEED, tried: bool = True) -> Verdict:
    """
    Choose: of the ways that save enough, those that are nearly as fast as the fastest; of these, the smallest.

    :param measured: the first is Stable-Baselines3's own buffer
    :param transitions: the size that is planned
    :param prefer: ``"speed"``, ``"balanced"`` or ``"memory"``
    :param tried: whether any codec was tried; observations may be too small for that
    """
    check_preference(prefer)
    plain, *others = measured
    sizes = {one.candidate.name: one.nbytes(transitions) for one in measured}
    front = pareto_front(measured, transitions)
    saving = [one for one in others if pays(sizes[plain.candidate.name] / sizes[one.candidate.name])]
    if not saving:
        best = min((sizes[one.candidate.name] for one in others), default=sizes[plain.candidate.name])
        factor = sizes[plain.candidate.name] / best
        reason = f"Do not compress: at best, the buffer would be {factor:.2f} times smaller."
        if factor < _NEARLY:
            reason = "Do not compress: nothing makes the buffer smaller." if tried else f"Do not compress: {_UNTRIED}."
        return Verdict(plain, False, reason, front)
    limit = min(map(cost_s, saving)) * _TOLERATED[prefer]
    affordable = [one for one in saving if cost_s(one) <= limit]
    smallest = min(sizes[one.candidate.name] for one in affordable)
    equals = [one for one in affordable if sizes[one.candidate.name] <= smallest * _NEARLY]
    chosen = min(equals, key=lambda one: (len(one.candidate.options), sizes[one.candidate.name]))
    factor = sizes[plain.candidate.name] / sizes[chosen.candidate.name]
    speed = cost_s(chosen) / cost_s(plain)
    smaller = f"{factor:,.0f}" if factor >= 10 else f"{factor:.1f}"
    reason = f"{smaller} times smaller than Stable-Baselines3's buffer, in {speed:.2f} of its time."
    if chosen.stored_as == RAW:
        why = "No codec makes the observations smaller" if tried else _UNTRIED.capitalize()
        reason += f" {why}; what is saved is that next observations are stored once."
    return Verdict(chosen, True, reason, front)


def check_preference(prefer: str) -> None:
    """Refuse what is none.

    :param prefer: what the user said
    """
    if prefer not in _TOLERATED:
        raise ParameterError("advise", "prefer", prefer, f"it must be one of: {', '.join(_TOLERATED)}")


def cost_s(one: Measured) -> float:
    """Seconds that a transition of a training run takes a buffer: it is added, and every so often there is a batch."""
    return one.add_s + one.sample_s / STEPS_PER_SAMPLE


def pareto_front(measured: Sequence[Measured], transitions: int) -> tuple[Measured, ...]:
    """Ways that no other beats in both memory and time, the smallest first."""
    front: list[Measured] = []
    for one in sorted(measured, key=lambda one: (one.nbytes(transitions), cost_s(one))):
        if not front or cost_s(one) < cost_s(front[-1]):
            front.append(one)
    return tuple(front)
