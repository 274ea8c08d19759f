"""The contract of observation stores: observations and next observations by cell number."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.heaps.state import State
from sb3_extra_buffers.memory import Bytes, Indices

#: Stands for a cell of the heap where there is none.
NO_CELL = -1


class ObservationStore(Protocol):
    """A fixed number of cells, numbered from 0. A cell holds an observation and, in a store of transitions, the next
    observation. Both have ``row_nbytes`` bytes, which are zero until they are written.

    Cell numbers are checked by the caller, so a store may trust them.
    """

    @property
    def cells(self) -> int:
        """Number of cells."""

    @property
    def row_nbytes(self) -> int:
        """Size of one observation, uncompressed."""

    @property
    def overhead(self) -> int:
        """Bytes of memory besides payloads and the index of the heap."""

    @property
    def active(self) -> ObservationStore | None:
        """The store that holds the data: this one, or the one that was chosen; ``None`` before the choice."""

    def describe(self) -> str:
        """How observations are stored and, for an automatic choice, why."""

    def write(self, cells: Indices, obs: Bytes | None, next_obs: Bytes | None = None, /) -> None:
        """Give the cells new content. The arrays are not kept. A write that fails leaves each cell as it was, or, if
        the write is so long that it is cut into steps, with its new content.

        :param cells: cell numbers, each once
        :param obs: observations, C-contiguous, shape ``(len(cells), row_nbytes)``; ``None`` leaves them as they are
        :param next_obs: next observations, likewise
        """

    def read(self, cells: Indices, out: Bytes | None, next_out: Bytes | None = None, /) -> None:
        """Write the content of the cells into the rows of ``out`` and ``next_out``.

        :param cells: cell numbers; they may repeat and come in any order
        :param out: receives observations, C-contiguous, shape ``(len(cells), row_nbytes)``; ``None`` skips them
        :param next_out: receives next observations, likewise
        """

    def stored_nbytes(self) -> int:
        """Bytes that the content of all written cells takes."""

    def holds(self, cells: Indices, /) -> NDArray[np.bool_]:
        """Which of these cells can be read. A heap of limited capacity may have evicted some.

        :param cells: cells that were written
        """

    def clear(self) -> None:
        """Make every cell zero again. Memory may be kept for later writes."""

    def state(self) -> State:
        """What another store on an equal heap needs in order to become this one. The heap has a state of its own."""

    def restore(self, state: State, /) -> None:
        """Become what another store was. This one must be new, and its heap has been restored.

        :param state: from a store that was built for the same request
        """


@runtime_checkable
class EvictingStore(Protocol):
    """A store that can lose cells in another order than the one in which they were written."""

    @property
    def dropped(self) -> int:
        """Payloads that were too large for the heap."""

    def held_before(self, cell: int) -> int:
        """How many cells right before this one, in a circle, are held without a gap.

        The cost of asking again depends on what was written and evicted since, not on the number of cells.

        :param cell: a cell number
        """


@runtime_checkable
class BoundedStore(Protocol):
    """A store that can tell before anything changes that rows could never be stored."""

    def refuse_too_large(self, rows: Bytes, /) -> bool:
        """Raise ``HeapFullError`` for rows that an empty heap would refuse.

        :param rows: as for :meth:`ObservationStore.write`
        :return: whether rows were encoded to find out: then the caller should remember that they fit
        """


@runtime_checkable
class OverlappingStore(Protocol):
    """A store of stacks that can read an observation and the next one into one row."""

    @property
    def overlapping_nbytes(self) -> int:
        """Size of such a row: the observation and one frame; 0 if there are none."""

    def read_overlapping(self, cells: Indices, out: Bytes, /) -> bool:
        """Read observations, followed by the newest frame of the next one, if each next observation is its observation
        shifted by one frame. So observations are the begin of each row, and next observations its end.

        :param cells: as for :meth:`ObservationStore.read`
        :param out: C-contiguous, shape ``(len(cells), overlapping_nbytes)``
        :return: whether all of them are such; if not, nothing was read
        """


@dataclass
class Origins:
    """Where the content of cells is: payloads in a heap, and rows that are in memory.

    :param codec: decodes the payloads
    :param cells: for each row, the cell of the heap that holds its payload; -1 if the row is in memory or all zero
    :param in_memory: which rows are in memory, and their content
    """

    codec: Any
    cells: Indices
    in_memory: list[tuple[Indices, Bytes]] = field(default_factory=list)


@runtime_checkable
class LocatedStore(Protocol):
    """A store that can say where its content is, for readers that decode payloads themselves."""

    def origins(self, cells: Indices, is_next: bool = False, /) -> Origins:
        """Where the content of these cells is now.

        :param cells: cell numbers; they may repeat and come in any order
        :param is_next: whether next observations are meant
        """


def join_origins(parts: list[Origins]) -> Origins:
    """Origins of several reads as one, for payloads of one codec."""
    sizes = np.cumsum([0, *(len(part.cells) for part in parts)]).tolist()
    in_memory = [(rows + first, content) for part, first in zip(parts, sizes) for rows, content in part.in_memory]
    codec = next((part.codec for part in parts if part.codec is not None), None)
    return Origins(codec, np.concatenate([part.cells for part in parts]), in_memory)
