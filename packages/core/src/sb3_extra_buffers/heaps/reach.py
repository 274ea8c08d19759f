"""Payloads that are somewhere else, brought to where a codec can read them."""

from __future__ import annotations

from typing import Protocol, cast

from sb3_extra_buffers.heaps.protocol import Heap
from sb3_extra_buffers.memory import ByteSource, Indices


class RemoteHeap(Heap, Protocol):
    """A heap whose payloads this process cannot see where they are."""

    def bring(self, starts: Indices, lengths: Indices, /) -> tuple[ByteSource, Indices]:
        """These payloads in memory of the process, all in one go; and where they are there."""


def within_reach(heap: Heap, starts: Indices, lengths: Indices) -> tuple[ByteSource, Indices]:
    """Where payloads of a batch can be read, and their positions there.

    :param heap: where they live
    :param starts: their positions in the heap
    :param lengths: their sizes
    """
    if getattr(heap, "bring", None) is None:
        return heap, starts
    return cast("RemoteHeap", heap).bring(starts, lengths)
