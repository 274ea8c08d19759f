"""Try codecs on some observations, and measure the best of them in buffers, beside that of Stable-Baselines3."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import torch as th
from stable_baselines3.common.buffers import ReplayBuffer

from sb3_extra_buffers import codecs
from sb3_extra_buffers.advisor.stream import Stream, cell_of, feed
from sb3_extra_buffers.codecs import CellSpec, Codec, CodecSpec
from sb3_extra_buffers.compressed import CompressedReplayBuffer
from sb3_extra_buffers.compressed.options import CELLS, FRAMES, StorageOptions
from sb3_extra_buffers.errors import ExtraBuffersError, PayloadError
from sb3_extra_buffers.memory import Bytes
from sb3_extra_buffers.stores import AUTO, BALANCED, PREFERENCES
from sb3_extra_buffers.stores.auto import MIN_NBYTES, pays

#: The word of memory reports for observations without a codec.
RAW = "none"
#: The name of Stable-Baselines3's own buffer.
PLAIN = "SB3"
#: A shorter stream is repeated to measure memory: several of the longest chunks.
_MIN_STEPS = 1024
#: Steps per timed call: more than any store compresses together.
_STEPS_PER_CALL = 64
#: Batches per timed call: the first of them finds the caches filled by another buffer.
_SAMPLES_PER_CALL = 3
_SEED = 0
#: After so many seconds, a slow level is tried on no further observations, but on these at least.
_SECONDS_PER_CODEC = 0.25
_MIN_ROWS = 4
#: Slower encoding adds a quarter of an hour to a run of a million observations.
_MAX_ENCODE_S = 1e-3
#: For observations of up to four gray frames of 84 x 84; larger ones may take longer in proportion.
_NBYTES = 4 * 84 * 84


@dataclass(frozen=True)
class Screened:
    """What a codec does with some observations: raw size by compressed size, and seconds for each observation."""

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
    """A codec or a layout, by name, that cannot be loaded or failed on the observations, with the whole error."""

    name: str
    reason: str


@dataclass(frozen=True)
class Dropped:
    """A codec that was tried but not measured in a buffer, and why."""

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
        ranges = () if plugin.levels is None or spec.params else plugin.levels.ranges
        levels = [CodecSpec(spec.name, {"level": level}) for low, high in ranges for level in _levels(low, high)]
        found += [] if plugin.identity else levels or [spec]
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
    last = len(front) - 1
    chosen = [front[round(n * last / (count - 1))] for n in range(count)] if last >= count else front
    reasons |= {one.spec: "between two that went into buffers" for one in front if one not in chosen}
    return chosen, [Dropped(spec, reason) for spec, reason in reasons.items()]


@dataclass(frozen=True)
class Candidate:
    """A way to store observations: its name in tables, and arguments of the buffer, as a user would write them."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


def candidates(stream: Stream, codecs: Sequence[Screened]) -> list[Candidate]:
    """Stable-Baselines3's buffer, ``"auto"`` with each value of ``prefer``, and some codecs in both layouts."""
    frames = stores_frames(stream)
    found = [Candidate(PLAIN), Candidate(AUTO)]
    if any(cell_of(space).nbytes >= MIN_NBYTES for space in stream.spaces.values()):
        found += [Candidate(f"{AUTO} {name}", {"prefer": name}) for name in PREFERENCES if name != BALANCED]
    for one in codecs:
        if frames:
            found.append(Candidate(f"{FRAMES} {one.spec}", {"compression_method": str(one.spec)}))
        layout = {"layout": CELLS} if frames else {}
        found.append(Candidate(f"{CELLS} {one.spec}", {"compression_method": str(one.spec), **layout}))
    return found


def stores_frames(stream: Stream) -> bool:
    """Whether ``layout="auto"`` stores observations of some key as frames."""
    options, steps = StorageOptions(), len(stream.steps)
    return any(options.wants_frames(space.shape or (), space.dtype, None, steps) for space in stream.spaces.values())  # type: ignore[arg-type]


@dataclass(frozen=True)
class Measured:
    """What a way to store costs.

    :param codecs: the codec of each key, as the buffer reports it; empty for Stable-Baselines3's own buffer
    :param fixed_nbytes: memory that does not depend on the size of the buffer
    :param nbytes_per_transition: memory for each transition, including actions, rewards and flags
    :param add_s: seconds to add a transition to a full buffer
    :param sample_s: seconds to sample a batch
    :param choices: how each key was chosen, as the buffer reports it
    """

    candidate: Candidate
    codecs: Mapping[str, str]
    fixed_nbytes: float
    nbytes_per_transition: float
    add_s: float
    sample_s: float
    choices: Mapping[str, str] = field(default_factory=dict)

    @property
    def codec(self) -> str:
        """The codecs of all keys, in a line."""
        return "; ".join(f"{key}: {codec}" if key else codec for key, codec in self.codecs.items())

    @property
    def stored_as(self) -> str:
        """``"frames"`` or ``"cells"`` if any key is stored so, else ``"none"``; ``"SB3"`` for its own buffer."""
        if self.candidate.name == PLAIN:
            return PLAIN
        kinds = {codec.partition(" ")[0] for codec in self.codecs.values()}  # a report has "none (chosen: …)"
        return FRAMES if FRAMES in kinds else CELLS if kinds - {RAW} else RAW

    def nbytes(self, transitions: int) -> float:
        """Memory of a full buffer for so many transitions."""
        return self.fixed_nbytes + transitions * self.nbytes_per_transition


def measure(
    stream: Stream, candidates: Sequence[Candidate], batch_size: int, rounds: int, report: Callable[[int], object]
) -> tuple[list[Measured], list[Failed]]:
    """
    Fill a buffer for each candidate with the same transitions, check that all return the same batches, and time them.

    The first candidate is Stable-Baselines3's own buffer. ``report`` is called with 1 after each candidate and round.
    """
    failed = []
    state, threads = np.random.get_state(), th.get_num_threads()
    th.set_num_threads(1)  # others only add noise
    try:
        trials = [_Trial(stream, candidates[0])]
        report(1)
        expected = trials[0].first_batch(batch_size)
        for candidate in candidates[1:]:
            try:
                one = _Trial(stream, candidate)
                if not _equal(one.first_batch(batch_size), expected):
                    raise ValueError("it returned another batch than Stable-Baselines3's buffer for the same seed")
                trials.append(one)
            except Exception as error:  # any error of a plugin is a result
                failed.append(Failed(candidate.name, f"{type(error).__name__}: {error}"))
            report(1)
        for _ in range(rounds):  # candidates alternate, so that a slow moment of the machine slows all of them
            for one in trials:
                one.time_add()
            for one in trials:
                one.time_sample(batch_size)
            report(1)
    finally:
        th.set_num_threads(threads)
        np.random.set_state(state)
    return [one.result() for one in trials], failed


class _Trial:
    """A candidate, its buffer with the stream, and its timings."""

    def __init__(self, stream: Stream, candidate: Candidate) -> None:
        self._stream, self._candidate = stream, candidate
        self._add: list[float] = []
        self._sample: list[float] = []
        self._next = 0
        # Buffers of two sizes: their difference separates fixed memory from memory per transition.
        steps, n_envs = max(len(stream.steps), _MIN_STEPS), stream.n_envs
        half, whole = (_kept_nbytes(self._filled(size)) for size in (steps // 2, steps))
        self._slope = max(0.0, (whole - half) / ((steps - steps // 2) * n_envs))
        self._fixed = max(0.0, whole - self._slope * steps * n_envs)
        self._buffer = self._filled(len(stream.steps))

    def _filled(self, count: int) -> ReplayBuffer:
        """A full buffer of so many steps, with the stream repeated as needed."""
        stream, options, size = self._stream, self._candidate.options, count * self._stream.n_envs
        is_plain = self._candidate.name == PLAIN
        buffer = stream.plain_buffer(size) if is_plain else stream.compressed_buffer(size, options)
        for first in range(0, count, len(stream.steps)):
            feed(buffer, stream.steps[: count - first])
        return buffer

    def first_batch(self, batch_size: int) -> Any:
        np.random.seed(_SEED)
        return self._buffer.sample(batch_size)

    def time_add(self) -> None:
        steps = self._stream.steps
        chosen = [steps[(self._next + index) % len(steps)] for index in range(_STEPS_PER_CALL)]
        self._next += _STEPS_PER_CALL
        begin = perf_counter()
        feed(self._buffer, chosen)
        self._add.append((perf_counter() - begin) / (_STEPS_PER_CALL * self._stream.n_envs))

    def time_sample(self, batch_size: int) -> None:
        for _ in range(_SAMPLES_PER_CALL):
            begin = perf_counter()
            self._buffer.sample(batch_size)
            self._sample.append(perf_counter() - begin)

    def result(self) -> Measured:
        buffer = self._buffer
        keys = buffer.memory_report().keys if isinstance(buffer, CompressedReplayBuffer) else ()
        codecs, choices = {key.key: key.codec for key in keys}, {key.key: key.choice for key in keys if key.choice}
        # Everything but observations is the same for all candidates.
        others = (self._buffer.actions, self._buffer.rewards, self._buffer.dones, self._buffer.timeouts)
        each = self._slope + sum(array.nbytes for array in others) / self._stream.transitions
        return Measured(self._candidate, codecs, self._fixed, each, median(self._add), median(self._sample), choices)


def _kept_nbytes(buffer: ReplayBuffer) -> float:
    if isinstance(buffer, CompressedReplayBuffer):
        report = buffer.memory_report()
        return report.live_nbytes + report.overhead
    observations: Any = buffer.observations
    arrays = list(observations.values()) if isinstance(observations, dict) else [observations]
    return 2 * float(sum(array.nbytes for array in arrays))


def _equal(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, dict):
        return all(_equal(ours[key], theirs[key]) for key in theirs)
    if isinstance(theirs, th.Tensor):
        # Bytes, not numbers: NaN equals itself here.
        return bool(ours.dtype == theirs.dtype and ours.numpy().tobytes() == theirs.numpy().tobytes())
    if theirs is None:
        return ours is None
    return all(_equal(one, other) for one, other in zip(ours, theirs))
