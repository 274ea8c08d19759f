"""The store contract: rows of bytes by cell number. What is above it never sees a payload."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.heaps.state import State
from sb3_extra_buffers.memory import Bytes, Indices


class Store(Protocol):
    """A fixed number of cells, numbered from 0, each of ``row_nbytes`` bytes that are all zero until written.

    Cells are checked by the array above, so a store may trust them.
    """

    @property
    def cells(self) -> int:
        """How many cells there are."""

    @property
    def row_nbytes(self) -> int:
        """Size of one cell, uncompressed."""

    @property
    def codec(self) -> str:
        """What the cells are stored with, and for an automatic choice why."""

    @property
    def overhead(self) -> int:
        """Bytes of memory that this store needs for itself, besides payloads and the index of a heap."""

    def read(self, cells: Indices, out: Bytes, /) -> None:
        """Write the content of the cells into the rows of ``out``.

        :param cells: cell numbers; they may repeat and come in any order
        :param out: C-contiguous, shape ``(len(cells), row_nbytes)``
        """

    def write(self, cells: Indices, rows: Bytes, /) -> None:
        """Give the cells new content. ``rows`` is not kept. A write that fails leaves each cell as it was, or, if the
        write is so long that it goes in several steps, with its new content.

        :param cells: cell numbers, each once
        :param rows: C-contiguous, shape ``(len(cells), row_nbytes)``
        """

    def stored_nbytes(self) -> int:
        """How many bytes the content of all written cells takes."""

    def holds(self, cells: Indices, /) -> NDArray[np.bool_]:
        """Which of these cells can be read; a heap of limited capacity may have dropped some to make room.

        :param cells: cells that were written
        """

    def clear(self) -> None:
        """Make every cell zero again. Memory may be kept for what comes next."""

    def state(self) -> State:
        """What another store on an equal heap needs in order to become this one. The heap has a state of its own."""

    def restore(self, state: State, /) -> None:
        """Become what another store was. This one must be new, and its heap has been restored.

        :param state: from a store that was built for the same demand
        """
