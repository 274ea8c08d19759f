"""What the heap of a full buffer holds at worst, beside what is alive in it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from benchmarks.transitions import OBSERVATION_SPACE
from sb3_extra_buffers.gpu_buffers import GpuReplayBuffer

#: How many times the live bytes a heap may hold, besides one row.
HELD_GOAL = 1.1


@dataclass(frozen=True)
class Memory:
    """The heap of one buffer at one moment.

    :param live: payload bytes, without what aligns them
    :param held: bytes that the heap holds for them: its blocks, its index, its staging area
    :param row: one step of all environments as it comes: the staging area has room for it
    :param device: by how much the memory that torch has given away on the device grew; ``None`` except on CUDA
    """

    live: int
    held: int
    row: int
    device: int | None

    @property
    def held_to_live(self) -> float:
        """How many times the live bytes are held."""
        return self.held / self.live

    @property
    def is_tight(self) -> bool:
        """Whether no more is held than the goal allows."""
        return self.held <= HELD_GOAL * self.live + self.row

    def as_json(self) -> dict[str, object]:
        """For the JSON file."""
        return {**asdict(self), "held_to_live": self.held_to_live, "is_tight": self.is_tight}


def memory_of(buffer: GpuReplayBuffer, device_nbytes: int | None) -> Memory:
    """What a full buffer holds now.

    :param buffer: the buffer
    :param device_nbytes: by how much the memory on the device grew while it was filled
    """
    heap = buffer.shared_heap
    assert heap is not None
    row = buffer.n_envs * OBSERVATION_SPACE.dtype.itemsize * math.prod(OBSERVATION_SPACE.shape)
    return Memory(heap.live, heap.nbytes, row, device_nbytes)


def worse(one: Memory | None, other: Memory) -> Memory:
    """The moment at which more was held for what is live. Segments fill and empty, so one moment says little."""
    return other if one is None or other.held_to_live > one.held_to_live else one
