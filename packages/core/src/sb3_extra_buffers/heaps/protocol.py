"""The heap contract: where payloads live, and which cell they belong to.

A heap has a fixed number of cells, numbered from 0, and holds at most one payload for each. Writing is done in two
steps, so that a codec can encode straight into memory that the heap provides::

    room = heap.reserve(cells, worst_case_bytes)   # nothing has changed yet
    lengths = encode_batch(codec, rows, room)
    heap.commit(lengths)                           # now the cells have new payloads, and the old ones are gone

The cells of one commit are a *row*. A heap of limited capacity makes room by evicting its oldest rows, whole.

One thread at a time: what was located may be reused by the next commit, so whoever reads while another thread writes
needs a lock around both. What the heap must do is said by the rules in :mod:`sb3_extra_buffers.testing`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from sb3_extra_buffers.memory import Bytes, ByteSource, Indices


@dataclass(frozen=True)
class Evictions:
    """What a heap has dropped to stay within its capacity, since it was made or cleared."""

    rows: int = 0
    cells: int = 0
    nbytes: int = 0


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
        """Give the reserved cells the payloads that were written into the reserved memory, one behind the other.

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
