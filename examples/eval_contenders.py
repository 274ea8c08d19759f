"""Which buffers the evaluations of memory compare, and how each is filled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from stable_baselines3.common.buffers import ReplayBuffer

from benchmarks.buffer_building import CELLS, FRAMES, SB3, make_replay
from benchmarks.codec_measure import WrongBytesError
from benchmarks.played import Recording
from benchmarks.timing import Stopwatch
from sb3_extra_buffers import codecs
from sb3_extra_buffers.compressed import BaseCompressedBuffer
from sb3_extra_buffers.errors import ParameterError

#: The codecs and levels of the table that the published package came with. Its ``lz4-block/16`` is 12 here: that is
#: what the library made of it, and the highest level that there is.
PUBLISHED = (
    *("none", "rle", "rle-jit", "gzip0", "gzip1", "gzip3", "igzip0", "igzip1", "igzip3"),
    *("zstd-100", "zstd-50", "zstd-20", "zstd-5", "zstd-3", "zstd-1", "zstd1", "zstd3", "zstd5", "zstd10"),
    *("lz4-frame/1", "lz4-frame/5", "lz4-block/1", "lz4-block/5"),
    # The slow ones last.
    *("lz4-frame/9", "lz4-block/9", "lz4-frame/12", "lz4-block/12", "zstd15", "zstd22"),
)
LAYOUTS = tuple(f"{FRAMES}{wish}" for wish in ("speed", "balanced", "memory"))
#: Behind a name: with the defaults of Stable-Baselines3, timeouts and next observations of their own, instead of
#: ``optimize_memory_usage``.
DEFAULTS = "+timeouts"
EVERYTHING = (*LAYOUTS, *PUBLISHED)
QUICK = ("none", "rle-jit", "zstd-5", "lz4-block/1", f"{FRAMES}speed")
_WARM_UP_ROWS = 64
_STEPS_PER_LOOK = 32
#: Which part of a recording must have been added.
_TELLING = 0.1
_CHECKED, _READ_AT_ONCE = 8192, 256


def chosen(requested: list[str] | None, quick: bool) -> tuple[list[str], list[str]]:
    """The names to measure, checked, and those that cannot be because nothing of that name is installed.

    :param requested: as typed: ``"zstd-5"``, ``"frames/memory"``; ``None`` for the whole list
    :param quick: whether a few are enough
    """
    wanted = requested if requested is not None else list(QUICK if quick else EVERYTHING)
    missing = [] if requested is not None else [name for name in wanted if not _is_installed(name)]
    names = [name for name in dict.fromkeys(wanted) if name not in missing]
    for name in names:
        plain_name = name.removesuffix(DEFAULTS)
        if plain_name.startswith(FRAMES):
            if plain_name not in LAYOUTS:
                raise ParameterError("frames", "prefer", name, f"it must be one of {', '.join(LAYOUTS)}")
        elif plain_name != SB3:
            codecs.bind(plain_name, codecs.CellSpec(np.uint8, 4 * 84 * 84))  # raises if there is no such codec or level
    return names, missing


def _is_installed(name: str) -> bool:
    return name.startswith((FRAMES, SB3)) or codecs.parse(name).name in codecs.names()


def make_contender(name: str, size: int, recording: Recording) -> ReplayBuffer:
    """An empty buffer, with ``optimize_memory_usage`` as in the published table, unless the name says otherwise.

    :param name: a codec for cells, ``"frames/…"``, or ``"SB3"``
    :param size: transitions, of all environments together
    :param recording: of what will be added
    """
    optimize, name = not name.endswith(DEFAULTS), name.removesuffix(DEFAULTS)
    full_name = name if name.startswith((FRAMES, SB3)) else f"{CELLS}{name}"
    return make_replay(full_name, size, recording.n_envs, optimize_memory_usage=optimize, spaces=recording.spaces)


@dataclass(frozen=True)
class Filling:
    """How a buffer was filled.

    :param steps: of all environments, that were added
    :param planned: that should have been
    :param rows: that the buffer has
    :param time: that ``add`` took
    :param growth: bytes that one more transition took, as long as there was room
    """

    steps: int
    planned: int
    rows: int
    time: Stopwatch
    growth: float

    @property
    def is_complete(self) -> bool:
        """Whether everything was added."""
        return self.steps == self.planned

    @property
    def is_telling(self) -> bool:
        """Whether what was added tells how large the rest is: games begin with little on the screen."""
        return self.steps >= _TELLING * self.planned

    @property
    def to_all_steps(self) -> float:
        """What times are multiplied with."""
        return self.planned / self.steps

    @property
    def to_all_rows(self) -> float:
        """What sizes are multiplied with."""
        return min(self.rows, self.planned) / min(self.rows, self.steps)


def warm_up(name: str, recording: Recording) -> None:
    """Use a small buffer once: what libraries and compiled code take is the same for a million transitions."""
    small = make_contender(name, _WARM_UP_ROWS * recording.n_envs, recording)
    for number in range(min(_WARM_UP_ROWS + 1, recording.steps)):
        small.add(*recording.step(number))
    small.sample(32)


def fill(buffer: ReplayBuffer, recording: Recording, limit: float) -> Filling:
    """Add what was recorded, until the end or until that took too long.

    :param buffer: an empty buffer
    :param recording: what to add
    :param limit: in seconds of the processor
    """
    time, sizes = Stopwatch(), []
    for number in range(recording.steps):
        if number % _STEPS_PER_LOOK == 0 and number <= buffer.buffer_size:
            sizes.append(_stored(buffer))
        step = recording.step(number)  # reading the file is nobody's cost
        with time:
            buffer.add(*step)
        if time.cpu > limit:
            break
    # From the first look on: some observations wait uncompressed until there are more of them, and always did.
    between = _STEPS_PER_LOOK * (len(sizes) - 2) * buffer.n_envs
    growth = (sizes[-1] - sizes[1]) / between if between > 0 else _stored(buffer) / ((number + 1) * buffer.n_envs)
    return Filling(number + 1, recording.steps, buffer.buffer_size, time, growth)


def _stored(buffer: ReplayBuffer) -> int:
    if isinstance(buffer, BaseCompressedBuffer):
        return buffer.memory_report().live_nbytes
    return int(buffer.size() * buffer.observations[0].nbytes)


def check(name: str, buffer: ReplayBuffer, recording: Recording, steps: int) -> None:
    """Read observations back, at most 8,192 of them, and fail unless they are what was recorded, bit by bit.

    :param name: of the buffer
    :param buffer: that was filled
    :param recording: what with
    :param steps: how many of it
    """
    rows = buffer.buffer_size
    numbers = np.arange(max(0, steps - rows), steps)
    if steps >= rows:
        numbers = numbers[1:]  # instead of the oldest observation, there is already the one after the newest
    step, env = (part.ravel() for part in np.meshgrid(numbers, np.arange(buffer.n_envs)))
    order = np.random.default_rng(0).permutation(len(step))[:_CHECKED]
    for first in range(0, len(order), _READ_AT_ONCE):
        some = order[first : first + _READ_AT_ONCE]
        places, moments = (step[some] % rows, env[some]), (step[some], env[some])
        same = np.array_equal(np.asarray(buffer.observations[places]), recording.observations[moments])
        if not buffer.optimize_memory_usage:
            following = np.asarray(buffer.next_observations[places])
            same = same and np.array_equal(following, recording.next_observations(*moments))
        if not same:
            raise WrongBytesError(f"{name}: an observation came back with other bytes than were stored")
