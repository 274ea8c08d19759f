"""Try every installed codec on a few observations, and choose the codecs that are worth a buffer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import numpy as np

from sb3_extra_buffers import codecs
from sb3_extra_buffers.codecs import CellSpec, Codec, CodecSpec
from sb3_extra_buffers.errors import ExtraBuffersError, PayloadError
from sb3_extra_buffers.memory import Bytes
from sb3_extra_buffers.stores.auto import pays

#: After so many seconds, a slow level is tried on no further observations, but on these at least.
_SECONDS_PER_CODEC = 0.25
_MIN_ROWS = 4
#: Slower encoding adds a quarter of an hour to a run of a million observations.
_MAX_ENCODE_S = 1e-3
#: For observations of up to four gray frames of 84 x 84; larger ones may take longer in proportion.
_NBYTES = 4 * 84 * 84


@dataclass(frozen=True)
class Screened:
    """The result of a codec on some observations.

    :param spec: the codec and its level
    :param ratio: raw size divided by compressed size
    :param encode_s: seconds to encode an observation
    :param decode_s: seconds to decode an observation
    """

    spec: CodecSpec
    ratio: float
    encode_s: float
    decode_s: float

    @property
    def seconds(self) -> float:
        """Seconds to encode and decode an observation."""
        return self.encode_s + self.decode_s


@dataclass(frozen=True)
class Failed:
    """A codec or a layout that cannot be loaded, or that failed on the observations: the reason is the whole error."""

    name: str
    reason: str


@dataclass(frozen=True)
class Dropped:
    """A codec and its level that was tried but not measured in a buffer, and why."""

    spec: CodecSpec
    reason: str


def specs(names: Sequence[str] | None = None) -> tuple[list[CodecSpec], list[Failed]]:
    """Every codec that compresses, at every level; and those that cannot be loaded.

    :param names: codecs as users write them; without a level, at all levels; ``None`` takes all that are installed, and
        reports broken ones instead of raising
    """
    found: list[CodecSpec] = []
    failed: list[Failed] = []
    for name in codecs.names() if names is None else names:
        spec = codecs.parse(name)
        try:
            plugin = codecs.registry.load(spec.name)
            plugin.complete(spec)
        except ExtraBuffersError as error:
            if names is not None:
                raise
            failed.append(Failed(name, str(error)))
            continue
        if plugin.identity:
            continue
        if plugin.levels is None or spec.params:
            found.append(spec)
            continue
        for low, high in plugin.levels.ranges:
            found.extend(CodecSpec(spec.name, {"level": level}) for level in _levels(low, high))
    return found, failed


def _levels(low: int, high: int) -> list[int]:
    """All levels of a range; of a range with hundreds of negative levels, a few of these."""
    if high - low <= 64:
        return list(range(low, high + 1))
    few = {-100, -50, -20, -10, -7, -5, -4, -3, -2, -1}
    return [level for level in range(max(low, -100), high + 1) if level >= 0 or level in few]


def screen(
    wanted: Sequence[CodecSpec], cell: CellSpec, rows: Bytes, report: Callable[[int], object]
) -> tuple[list[Screened], list[Failed]]:
    """Try codecs on observations of shape ``(n, cell.nbytes)``, and call ``report`` with 1 after each."""
    found, failed = [], []
    for spec in wanted:
        try:
            found.append(_try(spec, codecs.bind(spec, cell), rows))
        except Exception as error:  # any error of a plugin is a result
            failed.append(Failed(str(spec), f"{type(error).__name__}: {error}"))
        report(1)
    return found, failed


def _try(spec: CodecSpec, codec: Codec, rows: Bytes) -> Screened:
    codec.encode(rows[0])  # not timed: compiles and allocates
    payloads: list[bytes] = []
    # Medians: other processes on the machine disturb a few of the timings, not most.
    encoding: list[float] = []
    for row in rows:
        begin = perf_counter()
        payloads.append(bytes(codec.encode(row)))
        encoding.append(perf_counter() - begin)
        if sum(encoding) > _SECONDS_PER_CODEC and len(payloads) >= _MIN_ROWS:
            break
    out, decoding = np.empty(codec.cell.nbytes, np.uint8), []
    for row, payload in zip(rows, payloads):
        begin = perf_counter()
        codec.decode_into(payload, out)
        decoding.append(perf_counter() - begin)
        if not np.array_equal(out, row):
            raise PayloadError(codec.spec.name, len(payload), "decoding did not return the observation")
    ratio = len(payloads) * codec.cell.nbytes / sum(map(len, payloads))
    return Screened(spec, ratio, median(encoding), median(decoding))


def slowest_encode_s(nbytes: int) -> float:
    """Longest time to encode an observation of this size, in seconds, for a codec that the user has not asked for."""
    return _MAX_ENCODE_S * max(1.0, nbytes / _NBYTES)


def shortlist(
    screened: Sequence[Screened], count: int, slowest_s: float = math.inf
) -> tuple[list[Screened], list[Dropped]]:
    """The codecs that are worth a buffer: those that save enough, encode fast enough and are on the Pareto front.

    If there are more than ``count`` of them, they are taken evenly from the front, with its ends.
    """
    reasons: dict[CodecSpec, str] = {}
    for one in screened:
        if not pays(one.ratio):
            reasons[one.spec] = "less than a fifth is saved"
        elif one.encode_s > slowest_s:
            reasons[one.spec] = f"more than {1e3 * slowest_s:.1f} ms to encode an observation"
    worthy = [one for one in screened if one.spec not in reasons]
    for one in worthy:
        if any(other.ratio >= one.ratio and other.seconds < one.seconds for other in worthy):
            reasons[one.spec] = "another is both smaller and faster"
    front = sorted((one for one in worthy if one.spec not in reasons), key=lambda one: one.ratio)
    chosen = front
    if len(front) > count:
        chosen = [front[index] for index in sorted({round(n * (len(front) - 1) / (count - 1)) for n in range(count)})]
    reasons |= {one.spec: "between two that went into buffers" for one in front if one not in chosen}
    return chosen, [Dropped(spec, reason) for spec, reason in reasons.items()]
