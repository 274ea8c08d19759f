"""What a way to store costs: memory, adding and sampling, beside Stable-Baselines3's own buffer in the same run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import torch as th
from stable_baselines3.common.buffers import ReplayBuffer

from sb3_extra_buffers.advisor.candidates import PLAIN, Candidate
from sb3_extra_buffers.advisor.screening import Failed
from sb3_extra_buffers.advisor.stream import Stream, feed
from sb3_extra_buffers.compressed import CompressedReplayBuffer
from sb3_extra_buffers.compressed.options import CELLS, FRAMES

#: Observations that are kept without any codec.
RAW = "none"
#: A shorter stream is repeated for the look at memory: several of the longest chunks that there are.
_MIN_STEPS = 1024
#: How many steps are added in one timed call: more than any store compresses together.
_STEPS_PER_CALL = 64
#: Batches in a row: the first of them finds caches full of what another buffer has read.
_SAMPLES_PER_CALL = 3
_SEED = 0


@dataclass(frozen=True)
class Measured:
    """A way to store, and what it costs.

    :param candidate: the way
    :param codecs: what it came to for each key, as the buffer tells; nothing for Stable-Baselines3's own
    :param fixed_nbytes: memory whatever the size of the buffer
    :param nbytes_per_transition: memory for each transition; actions, rewards and flags included
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
        """What it came to, in a line."""
        return "; ".join(f"{key}: {codec}" if key else codec for key, codec in self.codecs.items())

    @property
    def stored_as(self) -> str:
        """What it came to, in a word: frames or cells if that holds for any key, as one that is left raw hides none."""
        if self.candidate.is_plain:
            return PLAIN
        found = {_stored_as(codec) for codec in self.codecs.values()}
        return next((kind for kind in (FRAMES, CELLS) if kind in found), RAW)

    def nbytes(self, transitions: int) -> float:
        """Memory of a full buffer.

        :param transitions: its size
        """
        return self.fixed_nbytes + transitions * self.nbytes_per_transition


def measure(
    stream: Stream, candidates: Sequence[Candidate], batch_size: int, rounds: int, report: Callable[[int], object]
) -> tuple[list[Measured], list[Failed]]:
    """
    Fill a buffer for each candidate with the same transitions, check that all return the same batches, and time them.

    :param stream: what to store
    :param candidates: the first is Stable-Baselines3's own buffer
    :param batch_size: of a sample
    :param rounds: how often each operation is timed; they take turns, so that a slow moment slows all of them alike
    :param report: called with 1 after each candidate was filled, and after each round
    """
    plain, *others = (_Contestant(stream, candidate) for candidate in candidates)
    drawn = np.random.get_state()  # of the caller, who may be in the middle of something
    try:
        return _compared(plain, others, batch_size, rounds, report)
    finally:
        np.random.set_state(drawn)


def _compared(
    plain: _Contestant, others: Sequence[_Contestant], batch_size: int, rounds: int, report: Callable[[int], object]
) -> tuple[list[Measured], list[Failed]]:
    plain.fill()
    report(1)
    running, failed = [plain], []
    for one in others:
        try:
            one.fill()
            one.check(plain, batch_size)
            running.append(one)
        except Exception as error:  # whatever a codec does to data that it was not made for is a finding
            failed.append(Failed(one.candidate.name, f"{type(error).__name__}: {error}"))
        report(1)
    with _one_thread():
        for _ in range(rounds):
            for one in running:
                one.time_add()
            for one in running:
                one.time_sample(batch_size)
            report(1)
    return [one.result() for one in running], failed


@contextmanager
def _one_thread() -> Iterator[None]:
    """Tensors are made by one copy each; a second thread of torch only adds its noise."""
    threads = th.get_num_threads()
    th.set_num_threads(1)
    try:
        yield
    finally:
        th.set_num_threads(threads)


class WrongBatchError(Exception):
    """A buffer returned another batch than Stable-Baselines3's for the same seed."""


class _Contestant:
    """A buffer with the stream in it."""

    def __init__(self, stream: Stream, candidate: Candidate) -> None:
        self.candidate = candidate
        self._stream = stream
        self._buffer: ReplayBuffer = stream.plain_buffer(stream.n_envs)  # filled later, one after the other
        self._fixed, self._slope = 0.0, 0.0
        self._add: list[float] = []
        self._sample: list[float] = []
        self._next = 0

    def fill(self) -> None:
        """Fill two buffers, one of half the size: what grows with a buffer is told from what does not by the two."""
        steps = max(len(self._stream.steps), _MIN_STEPS)
        half, whole = (_kept_nbytes(self._filled(size)) for size in (steps // 2, steps))
        n_envs = self._stream.n_envs
        self._slope = max(0.0, (whole - half) / ((steps - steps // 2) * n_envs))
        self._fixed = max(0.0, whole - self._slope * steps * n_envs)
        self._buffer = self._filled(len(self._stream.steps))

    def _filled(self, count: int) -> ReplayBuffer:
        """A full buffer of so many steps, the stream from its beginning again where it ends."""
        size, steps = count * self._stream.n_envs, self._stream.steps
        buffer: ReplayBuffer
        if self.candidate.is_plain:
            buffer = self._stream.plain_buffer(size)
        else:
            buffer = self._stream.compressed_buffer(size, self.candidate.options)
        for first in range(0, count, len(steps)):
            feed(buffer, steps[: count - first])
        return buffer

    def check(self, plain: _Contestant, batch_size: int) -> None:
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
        each = self._slope + _bookkeeping_nbytes(self._buffer) / self._stream.transitions
        return Measured(self.candidate, codecs, self._fixed, each, median(self._add), median(self._sample))


def _stored_as(codec: str) -> str:
    """From what a report says of a key, such as ``"none (chosen: …)"``."""
    kind = codec.partition(" ")[0]
    return kind if kind in (FRAMES, RAW) else CELLS


def _kept_nbytes(buffer: ReplayBuffer) -> float:
    """Memory of the observations that are stored now."""
    if isinstance(buffer, CompressedReplayBuffer):
        report = buffer.memory_report()
        return report.live_nbytes + report.overhead
    observations: Any = buffer.observations
    arrays = list(observations.values()) if isinstance(observations, dict) else [observations]
    return 2 * float(sum(array.nbytes for array in arrays))


def _bookkeeping_nbytes(buffer: ReplayBuffer) -> int:
    """Memory of all that is no observation, which is the same for all."""
    return sum(array.nbytes for array in (buffer.actions, buffer.rewards, buffer.dones, buffer.timeouts))


def _equal(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, dict):
        return all(_equal(ours[key], theirs[key]) for key in theirs)
    if isinstance(theirs, th.Tensor):
        # Bytes, not numbers: NaN is equal to itself here.
        return bool(ours.dtype == theirs.dtype and ours.numpy().tobytes() == theirs.numpy().tobytes())
    if theirs is None:
        return ours is None
    return all(_equal(one, other) for one, other in zip(ours, theirs))
