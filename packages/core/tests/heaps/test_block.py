"""A block is memory that can be written to and looked at."""

import numpy as np
import pytest

from sb3_extra_buffers.errors import HeapFullError
from sb3_extra_buffers.heaps.block import Block


def test_what_is_written_is_seen():
    block = Block.anonymous("test", 4096)
    block.write(10, memoryview(b"hello"))
    assert bytes(block.view(9, 7)) == b"\0hello\0"
    assert (block.nbytes, block.address) == (4096, block.data.ctypes.data)


def test_memory_of_somebody_else():
    data = np.arange(20, dtype=np.uint8)
    assert bytes(Block(data).view(3, 2)) == b"\x03\x04"


def test_more_than_there_is():
    with pytest.raises(HeapFullError, match="test"):
        Block.anonymous("test", 1 << 60)
