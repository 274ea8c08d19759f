"""Memory of decoded batches, which is used again."""

from __future__ import annotations

import math
from collections import deque
from sys import getrefcount
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.memory import Bytes

#: Smaller batches come from a free list anyway; a larger one is a copy of a whole array rather than a batch.
_MIN_BATCH_NBYTES, _MAX_BATCH_NBYTES = 1 << 16, 1 << 25
#: While a batch is created, the previous one is usually still in use.
BLOCKS = 2


def _pop(blocks: deque[Bytes]) -> tuple[Bytes, int]:
    """The block that was used last, and the number of references to it."""
    block = blocks.pop()
    return block, getrefcount(block)


#: The count for a block that is not in use. How many references the interpreter itself holds depends on its version.
_UNUSED = _pop(deque([np.empty(0, np.uint8)]))[1]


class BatchMemory:
    """Allocates arrays for batches, and reuses their memory once the arrays are dropped.

    The C library returns freed memory of this size to the system, which hands it out again page by page, each of them
    zeroed: for a batch of 32 images that can take longer than decoding it. Arrays and tensors that view a block hold a
    reference to it, so a block without references is free.

    :param blocks: for how many batches memory is kept
    """

    def __init__(self, blocks: int = BLOCKS) -> None:
        self.blocks = blocks
        self._blocks: deque[Bytes] = deque(maxlen=blocks)

    @property
    def nbytes(self) -> int:
        """How much memory is kept for later batches."""
        return sum(block.nbytes for block in self._blocks)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """An array with undefined content, like ``numpy.empty``."""
        nbytes = math.prod(shape) * dtype.itemsize
        if not _MIN_BATCH_NBYTES <= nbytes <= _MAX_BATCH_NBYTES:
            return np.empty(shape, dtype)
        return self._block(nbytes)[:nbytes].view(dtype).reshape(shape)

    def _block(self, nbytes: int) -> Bytes:
        # A block is removed while it is examined, so that two threads never find the same one. The one that was used
        # last comes first: it may still be in the cache.
        for _ in range(len(self._blocks)):
            try:
                block, references = _pop(self._blocks)
            except IndexError:  # another thread took it
                break
            if references == _UNUSED and nbytes <= block.nbytes:
                self._blocks.append(block)
                return block
            self._blocks.appendleft(block)
        block = np.empty(nbytes, np.uint8)
        self._blocks.append(block)
        return block

    def __reduce__(self) -> tuple[Any, ...]:
        return BatchMemory, (self.blocks,)  # the blocks belong to the batches
