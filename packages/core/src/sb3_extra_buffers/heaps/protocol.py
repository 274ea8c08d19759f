"""The heap contract: payloads by cell, and the optional capabilities of a heap.

A heap has a fixed number of cells, numbered from 0, and holds at most one payload for each. Writing is done in two
steps, so that a codec can encode straight into memory that the heap provides::

    room = heap.reserve(cells, worst_case_bytes)   # nothing has changed yet
    lengths = encode_batch(codec, rows, room)
    heap.commit(lengths)                           # now the cells have new payloads, and the old ones are gone

The cells of one commit are a *row*. A heap of limited capacity makes room by evicting its oldest rows, whole.

One thread at a time: the next commit may reuse the memory of what was located, so reading while another thread writes
needs a lock around both. The rules in :mod:`sb3_extra_buffers.testing` check the behaviour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast, runtime_checkable

from sb3_extra_buffers.heaps.state import State
from sb3_extra_buffers.memory import Bytes, ByteSource, Indices


@dataclass(frozen=True)
class Evictions:
    """What a heap has dropped to stay within its capacity, since it was created or cleared. The heap counts."""

    rows: int = 0
    cells: int = 0
    nbytes: int = 0


# Pickles name the public module, so that private ones can be renamed.
Evictions.__module__ = "sb3_extra_buffers.heaps"


@runtime_checkable
class Heap(ByteSource, Protocol):
    """Payloads by cell number."""

    @property
    def cells(self) -> int:
        """How many cells there are; they are numbered 0 to ``cells - 1``."""

    @property
    def live(self) -> int:
        """Payload bytes of all cells that can be located."""

    @property
    def capacity(self) -> int:
        """Payload bytes that the heap has room for without growing."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the heap holds: room for payloads (unless that is a file), index and staging area."""

    @property
    def evicted(self) -> Evictions:
        """What was dropped to make room."""

    def reserve(self, cells: Indices, worst_case_bytes: int, /) -> Bytes:
        """Get writable memory for the payloads of a row. A reservation that is never committed has no effect.

        :param cells: the cells to be written, each once
        :param worst_case_bytes: how much their payloads can take at the most, together
        :return: exactly ``worst_case_bytes`` bytes, valid until :meth:`commit` or the next :meth:`reserve`
        """

    def commit(self, lengths: Indices, /) -> None:
        """Give the reserved cells the payloads that were written into the reserved memory, contiguous.

        :param lengths: the size of each payload, at least 1, in the order of the reserved cells
        :raise HeapFullError: if they can not all fit; the cells then keep what they had. With ``never_fits`` if they
            would not fit into an empty heap either
        """

    def locate(self, cells: Indices, /) -> tuple[Indices, Indices]:
        """Where the payloads of these cells are, and how long. A cell without a payload has position -1.

        :param cells: cell numbers; they may repeat and come in any order
        """

    def clear(self) -> None:
        """Drop all payloads."""


# Optional capabilities. A heap has one if it has its members; buffers ask once, with isinstance().


@runtime_checkable
class RemoteHeap(Heap, Protocol):
    """A heap whose payloads must be fetched before a codec can read them."""

    def bring(self, starts: Indices, lengths: Indices, /) -> tuple[ByteSource, Indices]:
        """Fetch the payloads of a batch, all at once.

        :param starts: their positions in the heap
        :param lengths: their sizes
        :return: a source in memory of this process, and the positions of the payloads in it
        """


@runtime_checkable
class StatefulHeap(Protocol):
    """A heap that checkpoints can save and load."""

    def state(self) -> State:
        """Everything that another heap with the same parameters needs in order to become this one."""

    def restore(self, state: State) -> None:
        """Become what another heap was: cells, payloads, counts of evictions, and the order of eviction.

        :param state: from :meth:`state` of such a heap; this one must be new
        :raise StateError: if it does not fit; this heap must then be dropped
        """


@runtime_checkable
class DirectHeap(Protocol):
    """A heap with a shorter way to write a single cell."""

    def put(self, cell: int, parts: Sequence[Bytes], nbytes: int, /) -> None:
        """Do what :meth:`Heap.reserve` and :meth:`Heap.commit` do for a row of one cell.

        :param cell: the cell to be written
        :param parts: its payload, in pieces
        :param nbytes: the size of all pieces together, at least 1
        """


@runtime_checkable
class MovingHeap(Protocol):
    """A heap that counts how often it moves payloads, so that addresses can be remembered in between."""

    @property
    def moves(self) -> int | None:
        """How often payloads of cells that were not written have moved; ``None`` if addresses must not be kept."""


@runtime_checkable
class StrictHeap(Protocol):
    """A heap that can refuse a row instead of evicting others for it."""

    @property
    def refuses_when_full(self) -> bool:
        """Whether :meth:`Heap.commit` raises ``HeapFullError`` where other heaps evict."""


@runtime_checkable
class SizedHeap(Protocol):
    """A heap that can tell before anything is written that a row is larger than its capacity."""

    def refuse_too_large(self, lengths: list[int], /) -> None:
        """Raise ``HeapFullError`` with ``never_fits`` if these payloads, as one row, would not fit an empty heap.

        :param lengths: the sizes of the payloads
        """


@runtime_checkable
class FileHeap(Protocol):
    """A heap that says whether its payloads take memory of the process."""

    @property
    def payloads_in_memory(self) -> bool:
        """Whether the room for payloads is part of :attr:`Heap.nbytes`. A heap without this member has it there."""


def within_reach(heap: Heap, starts: Indices, lengths: Indices) -> tuple[ByteSource, Indices]:
    """Where the payloads of a batch can be read, and their positions there.

    :param heap: the heap that holds them
    :param starts: their positions in the heap
    :param lengths: their sizes
    """
    # Not isinstance(): this runs for every batch, and a runtime-checkable protocol looks at every member.
    if getattr(heap, "bring", None) is None:
        return heap, starts
    return cast("RemoteHeap", heap).bring(starts, lengths)
