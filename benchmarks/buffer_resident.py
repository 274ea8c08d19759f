"""The resident memory of a full replay buffer, measured in a process that does nothing else."""

from __future__ import annotations

import numpy as np

from benchmarks.buffer_building import fill_replay, make_replay
from benchmarks.resident import resident_nbytes
from benchmarks.transitions import Transitions

_ENVIRONMENTS = 8


def resident_of_replay(path: str, codec: str, transitions: int) -> int:
    """Fill a buffer and return by how many bytes the process grew, libraries not counted.

    :param path: an ``.npy`` file of observations of shape ``(n, 4, 84, 84)``; they are repeated as often as it takes
    :param codec: as people type it, or ``"SB3"``
    :param transitions: how many the buffer holds
    """
    # Mapped, so that the observations themselves are not part of the memory that is measured.
    observations = np.asarray(np.load(path, mmap_mode="r"))
    # Libraries and compiled code take the same memory for a million transitions as for a few. Used once before, they
    # do not count.
    small = make_replay(codec, 64 * _ENVIRONMENTS, _ENVIRONMENTS)
    fill_replay(small, Transitions(observations, _ENVIRONMENTS))
    small.sample(32)
    del small
    before = resident_nbytes()
    buffer = make_replay(codec, transitions, _ENVIRONMENTS)
    fill_replay(buffer, Transitions(observations, _ENVIRONMENTS))
    return resident_nbytes() - before
