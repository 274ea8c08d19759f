"""Which of the codecs that were tried are worth a buffer, and why the others are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sb3_extra_buffers.advisor.screening import Screened
from sb3_extra_buffers.codecs import CodecSpec
from sb3_extra_buffers.stores.judging import pays

#: Whoever takes longer than this to encode an observation adds a quarter of an hour to a run of a million of them.
_MAX_ENCODE_S = 1e-3
#: Of so many bytes at the most, four gray frames of 84 x 84; who stores more is used to longer runs.
_NBYTES = 4 * 84 * 84
#: For codecs that somebody wants to see, whatever they take.
ANY_TIME = float("inf")


@dataclass(frozen=True)
class Dropped:
    """A codec that went into no buffer.

    :param spec: the codec and its level
    :param reason: why
    """

    spec: CodecSpec
    reason: str


def slowest_encode_s(nbytes: int) -> float:
    """How many seconds a codec that nobody asked for may take to encode an observation.

    :param nbytes: of the observation
    """
    return _MAX_ENCODE_S * max(1.0, nbytes / _NBYTES)


def finalists(
    screened: Sequence[Screened], count: int, slowest_s: float = ANY_TIME
) -> tuple[list[Screened], list[Dropped]]:
    """Those that are worth a buffer: nothing else is smaller and faster, they save enough, and do not take for ever.

    :param screened: all that were tried
    :param count: how many at most; from all over the front, its ends included
    :param slowest_s: how many seconds encoding may take
    """
    reasons: dict[CodecSpec, str] = {}
    for one in screened:
        if not pays(one.ratio):
            reasons[one.spec] = "less than a fifth is saved"
        elif one.encode_s > slowest_s:
            reasons[one.spec] = f"more than {1e3 * slowest_s:.1f} ms to encode an observation"
    worthy = [one for one in screened if one.spec not in reasons]
    for one in worthy:
        if any(_beats(other, one) for other in worthy):
            reasons[one.spec] = "another is both smaller and faster"
    front = sorted((one for one in worthy if one.spec not in reasons), key=lambda one: one.ratio)
    chosen = front
    if len(front) > count:
        places = {round(step * (len(front) - 1) / (count - 1)) for step in range(count)}
        chosen = [front[place] for place in sorted(places)]
    for one in front:
        if one not in chosen:
            reasons[one.spec] = "between two that went into buffers"
    return chosen, [Dropped(spec, reason) for spec, reason in reasons.items()]


def _beats(one: Screened, other: Screened) -> bool:
    return one.ratio >= other.ratio and one.seconds < other.seconds
