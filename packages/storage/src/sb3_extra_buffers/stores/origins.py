"""``Origins``: where the content of cells is, for who reads a heap without the host."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from sb3_extra_buffers.memory import Bytes, Indices

#: Stands for a cell of the heap where there is none.
NO_CELL = -1


@dataclass
class Origins:
    """Payloads of a heap, and rows that are at hand.

    :param codec: what payloads were made with
    :param cells: for each row the cell of the heap that its payload is in, or -1: then it is at hand, or all zero
    :param at_hand: which rows are not in the heap, and their content
    """

    codec: Any
    cells: Indices
    at_hand: list[tuple[Indices, Bytes]] = field(default_factory=list)


@runtime_checkable
class LocatedStore(Protocol):
    """A store that can say where its content is."""

    def origins(self, cells: Indices, /) -> Origins:
        """Where the content of these cells is now.

        :param cells: cell numbers; they may repeat and come in any order
        """


def joined(parts: list[Origins]) -> Origins:
    """One behind the other, for payloads that were made with the same codec."""
    sizes = np.cumsum([0, *(len(part.cells) for part in parts)]).tolist()
    at_hand = [(rows + first, content) for part, first in zip(parts, sizes) for rows, content in part.at_hand]
    codec = next((part.codec for part in parts if part.codec is not None), None)
    return Origins(codec, np.concatenate([part.cells for part in parts]), at_hand)
