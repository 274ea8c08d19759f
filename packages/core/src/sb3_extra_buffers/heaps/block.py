"""``Block``: the memory that a heap copies payloads to."""

from __future__ import annotations

from sb3_extra_buffers.heaps.anonymous import allocate
from sb3_extra_buffers.memory import Bytes


class Block:
    """Memory of this process. A heap whose payloads live elsewhere brings blocks of its own.

    :param data: the memory
    """

    #: Whether it can be written to again when what is in it is not needed any more.
    reusable = True

    def __init__(self, data: Bytes) -> None:
        self.data = data
        self.nbytes = len(data)
        #: Where it begins.
        self.address = int(data.ctypes.data)
        self._view = memoryview(data)

    @classmethod
    def anonymous(cls, label: str, nbytes: int) -> Block:
        """A block straight from the operating system.

        :param label: the heap's name, for the error
        :param nbytes: how much
        """
        return cls(allocate(label, nbytes))

    def view(self, place: int, length: int) -> memoryview:
        """Bytes as they are now."""
        return self._view[place : place + length]

    def write(self, place: int, payloads: memoryview) -> None:
        """Copy bytes to a place where there is room for them."""
        self._view[place : place + len(payloads)] = payloads


class SavedBlock(Block):
    """Bytes of a file that was mapped: read where they are, and never written to.

    :param data: the bytes
    """

    reusable = False
