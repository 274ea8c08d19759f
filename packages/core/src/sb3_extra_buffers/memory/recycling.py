"""``BatchMemory``: the memory of a batch serves the next one, once nobody holds it any more."""

from __future__ import annotations

import math
from collections import deque
from sys import getrefcount
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.memory.types import Bytes

#: Below, memory comes from a free list anyway; above, it is a copy of the whole array rather than a batch.
_MIN_NBYTES, _MAX_NBYTES = 1 << 16, 1 << 25
#: While a batch is made, the one before it is usually still in somebody's variable.
BLOCKS = 2


def _pop(blocks: deque[Bytes]) -> tuple[Bytes, int]:
    """The block that was used last, and how many references to it are counted here."""
    block = blocks.pop()
    return block, getrefcount(block)


#: What is counted for a block that nobody uses. How many the interpreter itself holds depends on its version.
_UNUSED = _pop(deque([np.empty(0, np.uint8)]))[1]


class BatchMemory:
    """Arrays for batches, in memory that is used again.

    The C library returns freed memory of this size to the system, which hands it out again page by page, each of them
    zeroed: on a batch of 32 images that can take longer than decoding them. Arrays and tensors that look into a block
    hold a reference to it, so a block without one is free.

    :param blocks: for how many batches memory is kept
    """

    def __init__(self, blocks: int = BLOCKS) -> None:
        self.blocks = blocks
        self._blocks: deque[Bytes] = deque(maxlen=blocks)

    @property
    def nbytes(self) -> int:
        """How much memory is held for the batches to come."""
        return sum(block.nbytes for block in self._blocks)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """An array with any content, as ``numpy.empty`` makes it.

        :param shape: of the array
        :param dtype: of its elements
        """
        nbytes = math.prod(shape) * dtype.itemsize
        if not _MIN_NBYTES <= nbytes <= _MAX_NBYTES:
            return np.empty(shape, dtype)
        return self._block(nbytes)[:nbytes].view(dtype).reshape(shape)

    def _block(self, nbytes: int) -> Bytes:
        # A block is taken out while it is looked at, so that two threads never find the same one. The one that was used
        # last comes first: where a batch is done with at once, on its way to a device, it is still in the cache.
        for _ in range(len(self._blocks)):
            try:
                block, references = _pop(self._blocks)
            except IndexError:  # another thread has it
                break
            if references == _UNUSED and nbytes <= block.nbytes:
                self._blocks.append(block)
                return block
            self._blocks.appendleft(block)
        block = np.empty(nbytes, np.uint8)
        self._blocks.append(block)
        return block

    def __reduce__(self) -> tuple[Any, ...]:
        return BatchMemory, (self.blocks,)  # what is in it belongs to those who asked for it
