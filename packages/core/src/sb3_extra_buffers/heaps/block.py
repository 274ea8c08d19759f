"""``Block``: the memory that a heap copies payloads to."""

from __future__ import annotations

import numpy as np

from sb3_extra_buffers.errors import HeapFullError
from sb3_extra_buffers.memory import Bytes, pages


def allocate(label: str, nbytes: int) -> Bytes:
    """Allocate zeroed memory from the operating system, which gets it back as soon as the array is dropped."""
    try:
        return np.frombuffer(pages(nbytes), np.uint8)
    except MemoryError as error:
        hint = "The operating system refused the memory; use a smaller buffer, another codec, or a heap in a file."
        raise HeapFullError(label, nbytes, 0, hint) from error


class Block:
    """Memory of this process. A heap whose payloads are elsewhere has blocks of another kind.

    :param data: the memory
    :param reusable: whether it may be written again when its content is no longer needed. A part of a mapped checkpoint
        file is not: it is read in place
    """

    reusable = True

    def __init__(self, data: Bytes, reusable: bool = True) -> None:
        self.data, self.reusable = data, reusable
        self.nbytes = len(data)
        #: The address of the first byte.
        self.address = int(data.ctypes.data)
        self._view = memoryview(data)

    @classmethod
    def anonymous(cls, label: str, nbytes: int) -> Block:
        """A block of new memory from the operating system."""
        return cls(allocate(label, nbytes))

    def view(self, place: int, length: int) -> memoryview:
        """A view of some bytes."""
        return self._view[place : place + length]

    def write(self, place: int, payloads: memoryview) -> None:
        """Copy bytes into the block, where there is room for them."""
        self._view[place : place + len(payloads)] = payloads
