"""What a full replay buffer takes, measured in a process that does nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from stable_baselines3.common.buffers import ReplayBuffer

from benchmarks.played import Recording
from benchmarks.resident import resident_nbytes
from benchmarks.timing import Stopwatch, median_of
from examples.eval_contenders import Filling, check, fill, make_contender, warm_up

BATCH_SIZES = (32, 256)
#: Bytes of a transition besides its observation: action, reward, flags, and where the observation is.
_BESIDES = 50


@dataclass(frozen=True)
class Saving:
    """What one buffer took.

    :param name: a codec for cells, ``"frames/…"``, or ``"SB3"``
    :param filling: how it was filled
    :param transitions: that are in it
    :param resident: growth of the process's memory in bytes, libraries not counted
    :param sample: median time of a batch, by its size
    """

    name: str
    filling: Filling
    transitions: int
    resident: int
    sample: dict[int, Stopwatch]

    @property
    def full_resident(self) -> float | None:
        """The memory of a full buffer; extrapolated if it was not filled, ``None`` if too little was added for that.

        Not everything grows with the transitions: what a codec keeps for itself would count many times.
        """
        if not self.filling.is_telling:
            return None
        return self.resident + (self.filling.growth + _BESIDES) * self.transitions * (self.filling.to_all_rows - 1)

    @property
    def full_cpu(self) -> float:
        """What adding everything takes; extrapolated if it was not."""
        return self.filling.time.cpu * self.filling.to_all_steps


def measure_saving(folder: str, name: str, size: int, limit: float, rounds: int) -> Saving:
    """Fill a buffer, sample from it, and check every observation that is in it.

    :param folder: of the recording
    :param name: of the buffer
    :param size: transitions that it holds
    :param limit: how many seconds of the processor adding may take
    :param rounds: how many batches of each size are drawn
    """
    torch.set_num_threads(1)  # tensors are made by one memcpy each; a second thread would only add its noise
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
