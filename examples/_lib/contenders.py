"""The buffers that the evaluations of memory compare: made, filled, checked and measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.save_util import load_from_pkl, save_to_pkl

from benchmarks._lib.buffers import CELLS, FRAMES, SB3, make_replay
from benchmarks._lib.game_recording import Recording
from benchmarks._lib.measure import Stopwatch, WrongBytesError, measure_in_child, median_of, resident_nbytes
from sb3_extra_buffers import codecs
from sb3_extra_buffers.compressed import BaseCompressedBuffer
from sb3_extra_buffers.errors import ParameterError

#: The codecs and levels of the published table. Its ``lz4-block/16`` is 12 here, the highest level of the library.
PUBLISHED = (
    *("none", "rle", "rle-jit", "gzip0", "gzip1", "gzip3", "igzip0", "igzip1", "igzip3"),
    *("zstd-100", "zstd-50", "zstd-20", "zstd-5", "zstd-3", "zstd-1", "zstd1", "zstd3", "zstd5", "zstd10"),
    *("lz4-frame/1", "lz4-frame/5", "lz4-block/1", "lz4-block/5"),
    # The slow ones last.
    *("lz4-frame/9", "lz4-block/9", "lz4-frame/12", "lz4-block/12", "zstd15", "zstd22"),
)
LAYOUTS = tuple(f"{FRAMES}{wish}" for wish in ("speed", "balanced", "memory"))
#: Suffix of a name: with the defaults of Stable-Baselines3 (timeouts, separate next observations) instead of
#: ``optimize_memory_usage``.
DEFAULTS = "+timeouts"
EVERYTHING = (*LAYOUTS, *PUBLISHED)
QUICK = ("none", "rle-jit", "zstd-5", "lz4-block/1", f"{FRAMES}speed")
_WARM_UP_STEPS = 64
_STEPS_PER_SIZE = 32
#: Fraction of a recording that must have been added before sizes are extrapolated.
_TELLING = 0.1
_CHECKED, _READ_AT_ONCE = 8192, 256
BATCH_SIZES = (32, 256)
#: Bytes of a transition besides its observation: action, reward, flags, and the index.
_BESIDES = 50


def chosen(requested: list[str] | None, quick: bool) -> tuple[list[str], list[str]]:
    """The names to measure, validated, and the names that are not installed.

    :param requested: such as ``"zstd-5"`` or ``"frames/memory"``; ``None`` for the whole list
    :param quick: whether to measure only a few
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
    """An empty buffer, with ``optimize_memory_usage`` unless the name ends with ``DEFAULTS``.

    :param name: a codec for cells, ``"frames/…"``, or ``"SB3"``
    :param size: transitions of all environments together
    :param recording: the transitions that will be added
    """
    optimize, name = not name.endswith(DEFAULTS), name.removesuffix(DEFAULTS)
    full_name = name if name.startswith((FRAMES, SB3)) else f"{CELLS}{name}"
    return make_replay(full_name, size, recording.n_envs, optimize_memory_usage=optimize, spaces=recording.spaces)


@dataclass(frozen=True)
class Filling:
    """How a buffer was filled.

    :param steps: steps that were added
    :param planned: steps of the recording
    :param rows: steps that the buffer holds
    :param time: time of ``add``
    :param growth: bytes per transition until the buffer was full
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
        """Whether enough was added to extrapolate the size: games begin with little on the screen."""
        return self.steps >= _TELLING * self.planned

    @property
    def to_all_steps(self) -> float:
        """Factor of extrapolated times."""
        return self.planned / self.steps

    @property
    def to_all_rows(self) -> float:
        """Factor of extrapolated sizes."""
        return min(self.rows, self.planned) / min(self.rows, self.steps)


def warm_up(name: str, recording: Recording) -> None:
    """Use a small buffer once, so that libraries and compiled code do not count."""
    small = make_contender(name, _WARM_UP_STEPS * recording.n_envs, recording)
    for number in range(min(_WARM_UP_STEPS + 1, recording.steps)):
        small.add(*recording.step(number))
    small.sample(32)


def fill(buffer: ReplayBuffer, recording: Recording, limit: float) -> Filling:
    """Add a recording, until its end or the time limit.

    :param buffer: an empty buffer
    :param recording: the transitions
    :param limit: CPU seconds
    """
    time, sizes = Stopwatch(), []
    for number in range(recording.steps):
        if number % _STEPS_PER_SIZE == 0 and number <= buffer.buffer_size:
            sizes.append(_stored(buffer))
        step = recording.step(number)  # reading the file does not count
        with time:
            buffer.add(*step)
        if time.cpu > limit:
            break
    # Without the first size: the newest observations are not compressed yet, and that share is constant.
    between = _STEPS_PER_SIZE * (len(sizes) - 2) * buffer.n_envs
    growth = (sizes[-1] - sizes[1]) / between if between > 0 else _stored(buffer) / ((number + 1) * buffer.n_envs)
    return Filling(number + 1, recording.steps, buffer.buffer_size, time, growth)


def _stored(buffer: ReplayBuffer) -> int:
    if isinstance(buffer, BaseCompressedBuffer):
        return buffer.memory_report().live_nbytes
    return int(buffer.size() * buffer.observations[0].nbytes)


def check(name: str, buffer: ReplayBuffer, recording: Recording, steps: int) -> None:
    """Read at most 8,192 observations, and raise unless they equal the recorded ones bit by bit.

    :param name: name of the buffer
    :param buffer: a filled buffer
    :param recording: the transitions that were added
    :param steps: number of added steps
    """
    rows = buffer.buffer_size
    numbers = np.arange(max(0, steps - rows), steps)
    if steps >= rows:
        numbers = numbers[1:]  # the oldest observation is replaced by the one after the newest
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


@dataclass(frozen=True)
class Saving:
    """Memory and time of one buffer.

    :param name: a codec for cells, ``"frames/…"``, or ``"SB3"``
    :param filling: how it was filled
    :param transitions: number of stored transitions
    :param resident: growth of the process in bytes, without libraries
    :param sample: median time of a batch, by batch size
    """

    name: str
    filling: Filling
    transitions: int
    resident: int
    sample: dict[int, Stopwatch]

    @property
    def full_resident(self) -> float | None:
        """Memory of a full buffer, extrapolated if it is not full; ``None`` if too little was added.

        Only the growth is extrapolated: the memory of the codec itself is constant.
        """
        if not self.filling.is_telling:
            return None
        return self.resident + (self.filling.growth + _BESIDES) * self.transitions * (self.filling.to_all_rows - 1)

    @property
    def full_cpu(self) -> float:
        """CPU time to add everything, extrapolated if not everything was added."""
        return self.filling.time.cpu * self.filling.to_all_steps


def measure_saving(folder: str, name: str, size: int, limit: float, rounds: int) -> Saving:
    """Fill a buffer, sample from it, and check its observations.

    :param folder: folder of the recording
    :param name: name of the buffer
    :param size: size of the buffer in transitions
    :param limit: CPU seconds for ``add``
    :param rounds: number of batches of each size
    """
    torch.set_num_threads(1)  # tensors are made by one memcpy each; a second thread only adds noise
    recording = Recording(folder)
    warm_up(name, recording)
    before = resident_nbytes()
    buffer = make_contender(name, size, recording)
    filling = fill(buffer, recording, limit)
    resident = resident_nbytes() - before
    samples = {batch_size: _sample(buffer, batch_size, rounds) for batch_size in BATCH_SIZES}
    check(name, buffer, recording, filling.steps)
    return Saving(name, filling, buffer.size() * buffer.n_envs, resident, samples)


def _sample(buffer: ReplayBuffer, batch_size: int, rounds: int) -> Stopwatch:
    watches = [Stopwatch() for _ in range(rounds)]
    for watch in watches:
        with watch:
            buffer.sample(batch_size)
    return median_of(watches)


@dataclass(frozen=True)
class Loading:
    """Time to read, save and load one buffer.

    :param name: a codec for cells, ``"frames/…"``, or ``"SB3"``
    :param filling: how it was filled
    :param read: time to sample as many transitions as there are, in batches of 256
    :param save: time to pickle it into a file
    :param file: bytes of that file
    :param load: time to load it in a new process
    :param resident: growth of that process in bytes, without libraries
    """

    name: str
    filling: Filling
    read: Stopwatch
    save: Stopwatch
    file: int
    load: Stopwatch
    resident: int


def measure_loading(folder: str, name: str, size: int, limit: float) -> Loading:
    """Fill a buffer, read it, save it, and load and check it in another process.

    :param folder: folder of the recording; the buffer is saved there temporarily
    :param name: name of the buffer
    :param size: size of the buffer in transitions
    :param limit: CPU seconds for ``add``
    """
    file = str(Path(folder, "buffer.pkl"))
    try:
        filling, read, save = measure_in_child(_fill_and_save, folder, file, name, size, limit)
        nbytes = Path(file).stat().st_size
        load, resident = measure_in_child(_load, folder, file, name, filling.steps)
    finally:
        Path(file).unlink(missing_ok=True)
    return Loading(name, filling, read, save, nbytes, load, resident)


def _fill_and_save(folder: str, file: str, name: str, size: int, limit: float) -> tuple[Filling, Stopwatch, Stopwatch]:
    torch.set_num_threads(1)  # tensors are made by one memcpy each; a second thread only adds noise
    recording = Recording(folder)
    warm_up(name, recording)
    buffer = make_contender(name, size, recording)
    filling = fill(buffer, recording, limit)
    read, save = Stopwatch(), Stopwatch()
    with read:
        for _ in range(-(-buffer.size() * buffer.n_envs // BATCH_SIZES[-1])):
            buffer.sample(BATCH_SIZES[-1])
    with save:
        save_to_pkl(file, buffer)
    return filling, read, save


def _load(folder: str, file: str, name: str, steps: int) -> tuple[Stopwatch, int]:
    recording = Recording(folder)
    warm_up(name, recording)
    before, load = resident_nbytes(), Stopwatch()
    with load:
        buffer = load_from_pkl(file)
    resident = resident_nbytes() - before
    check(name, buffer, recording, steps)
    return load, resident
