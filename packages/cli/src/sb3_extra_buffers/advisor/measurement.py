"""Measure what ways to store observations cost in memory and time, beside the buffer of Stable-Baselines3."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import torch as th
from stable_baselines3.common.buffers import ReplayBuffer

from sb3_extra_buffers.advisor.shortlist import Failed, Screened
from sb3_extra_buffers.advisor.stream import Stream, feed
from sb3_extra_buffers.compressed import CompressedReplayBuffer
from sb3_extra_buffers.compressed.options import CELLS, FRAMES, StorageOptions
from sb3_extra_buffers.stores import AUTO, PREFERENCES, SPEED

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


@dataclass(frozen=True)
class Candidate:
    """A way to store observations.

    :param name: its name in tables
    :param options: arguments of the buffer, as a user would write them
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


def candidates(stream: Stream, codecs: Sequence[Screened]) -> list[Candidate]:
    """Stable-Baselines3's buffer, ``"auto"``, every preference for frames, and some codecs in both layouts."""
    frames = stores_frames(stream)
    found = [Candidate(PLAIN), Candidate(AUTO)]
    if frames:
        found += [Candidate(f"{FRAMES} {name}", {"prefer": name}) for name in PREFERENCES if name != SPEED]
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

    :param candidate: the way to store
    :param codecs: the codec of each key, as the buffer reports it; empty for Stable-Baselines3's own buffer
    :param fixed_nbytes: memory that does not depend on the size of the buffer
    :param nbytes_per_transition: memory for each transition, including actions, rewards and flags
    :param add_s: seconds to add a transition to a full buffer
    :param sample_s: seconds to sample a batch
    """

    candidate: Candidate
    codecs: Mapping[str, str]
    fixed_nbytes: float
    nbytes_per_transition: float
    add_s: float
    sample_s: float

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
        """Memory of a full buffer of this size."""
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
        for candidate in candidates[1:]:
            try:
                one = _Trial(stream, candidate)
                one.check(trials[0], batch_size)
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


class WrongBatchError(Exception):
    """A buffer returned a batch that differs from that of Stable-Baselines3."""


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

    def check(self, plain: _Trial, batch_size: int) -> None:
        np.random.seed(_SEED)
        ours = self._buffer.sample(batch_size)
        np.random.seed(_SEED)
        if not _equal(ours, plain._buffer.sample(batch_size)):
            raise WrongBatchError("it returned another batch than Stable-Baselines3's buffer for the same seed")

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
        codecs = {}
        if isinstance(self._buffer, CompressedReplayBuffer):
            codecs = {key.key: key.codec for key in self._buffer.memory_report().keys}
        # Everything but observations is the same for all candidates.
        others = (self._buffer.actions, self._buffer.rewards, self._buffer.dones, self._buffer.timeouts)
        each = self._slope + sum(array.nbytes for array in others) / self._stream.transitions
        return Measured(self._candidate, codecs, self._fixed, each, median(self._add), median(self._sample))


def _kept_nbytes(buffer: ReplayBuffer) -> float:
    """Memory of the stored observations."""
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
