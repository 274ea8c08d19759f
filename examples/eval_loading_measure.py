"""What it takes to read a replay buffer, to save it, and to load it again, measured in processes of their own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from stable_baselines3.common.save_util import load_from_pkl, save_to_pkl

from benchmarks.played import Recording
from benchmarks.resident import measure_in_child, resident_nbytes
from benchmarks.timing import Stopwatch
from examples.eval_contenders import Filling, check, fill, make_contender, warm_up

_BATCH = 256


@dataclass(frozen=True)
class Loading:
    """What one buffer took.

    :param name: a codec for cells, ``"frames/…"``, or ``"SB3"``
    :param filling: how it was filled
    :param read: to draw as many transitions as there are, in batches of 256
    :param save: to pickle it into a file
    :param file: bytes of that file
    :param load: to load it, in a new process
    :param resident: what that process grew by, in bytes, libraries not counted
    """

    name: str
    filling: Filling
    read: Stopwatch
    save: Stopwatch
    file: int
    load: Stopwatch
    resident: int


def measure_loading(folder: str, name: str, size: int, limit: float) -> Loading:
    """Fill a buffer, read it, save it, load it in another process, and check there what was loaded.

    :param folder: of the recording; the buffer is saved there for a moment
    :param name: of the buffer
    :param size: transitions that it holds
    :param limit: how many seconds of the processor adding may take
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
    torch.set_num_threads(1)  # tensors are made by one memcpy each; a second thread would only add its noise
    recording = Recording(folder)
    warm_up(name, recording)
    buffer = make_contender(name, size, recording)
    filling = fill(buffer, recording, limit)
    read, save = Stopwatch(), Stopwatch()
    with read:
        for _ in range(-(-buffer.size() * buffer.n_envs // _BATCH)):
            buffer.sample(_BATCH)
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
