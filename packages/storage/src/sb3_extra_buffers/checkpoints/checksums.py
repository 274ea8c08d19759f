"""Checksums of blocks, so that damage is not only found but located."""

from __future__ import annotations

from collections.abc import Iterator
from zlib import crc32

#: One checksum covers this much. A megabyte is read in a fraction of a millisecond, and a gigabyte has a thousand.
BLOCK_NBYTES = 1 << 20


def block_count(nbytes: int) -> int:
    """How many blocks an array has."""
    return -(-nbytes // BLOCK_NBYTES)


def blocks(content: memoryview) -> Iterator[memoryview]:
    """The bytes of an array, block by block.

    :param content: bytes in one dimension
    """
    for begin in range(0, len(content), BLOCK_NBYTES):
        yield content[begin : begin + BLOCK_NBYTES]


def checksums(content: memoryview) -> list[int]:
    """The checksum of each block of an array.

    :param content: bytes in one dimension
    """
    return [crc32(block) for block in blocks(content)]
