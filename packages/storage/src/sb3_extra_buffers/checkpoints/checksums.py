"""Comparison of mapped files with their checksums: a whole file, bytes that are copied, bytes that are first read."""

from __future__ import annotations

import mmap
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from weakref import WeakKeyDictionary, ref
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.checkpoints.format import CHECKSUM_BLOCK_NBYTES, OF_BLOCKS, Layout
from sb3_extra_buffers.checkpoints.memory_map import reading_once
from sb3_extra_buffers.errors import FileDamagedError
from sb3_extra_buffers.memory import address_of, mapping_of


@dataclass(frozen=True)
class Checksums:
    """The checksums of a file whose data begin at ``begin``. This object does not keep the file mapped."""

    path: Path
    begin: int
    layout: Layout

    def check(self, content: memoryview, low: int, high: int, hint: str = FileDamagedError.hint) -> None:
        """Refuse a file if a block with bytes from ``low`` to ``high`` does not match. The error names every one."""
        damage = tuple(self._damage(content, low, high))
        if damage:
            raise FileDamagedError(str(self.path), damage, hint)

    def _damage(self, content: memoryview, low: int, high: int) -> Iterator[str]:
        table, (names, begins, ends) = self.layout.checksums, self._blocks
        sums = np.frombuffer(content[self.begin + table.begin : self.begin + table.end], "<u4")
        for number in range(bisect_right(ends, low), bisect_right(begins, high - 1)):
            block = content[begins[number] : ends[number]]
            with reading_once(block):
                found = crc32(block)
            if found != sums[OF_BLOCKS + number]:
                yield names[number]

    @cached_property
    def _blocks(self) -> tuple[list[str], list[int], list[int]]:
        """The name, first byte and end of each block in the file. Every block has a checksum, in this order."""
        names, begins, ends = [], [], []
        for entry in self.layout.entries:
            for start in range(0, entry.nbytes, CHECKSUM_BLOCK_NBYTES):
                end = min(start + CHECKSUM_BLOCK_NBYTES, entry.nbytes)
                names.append(f"{entry.name!r}, bytes {start} to {end - 1}")
                begins.append(self.begin + entry.begin + start)
                ends.append(self.begin + entry.begin + end)
        return names, begins, ends


#: The checksums of every mapped file, as long as the mapping is in use.
checksums: WeakKeyDictionary[mmap.mmap, Checksums] = WeakKeyDictionary()


def check_source(content: NDArray[np.generic], hint: str = FileDamagedError.hint) -> None:
    """Refuse bytes of a mapped file that do not match their checksums. Other memory is not checked."""
    pages = mapping_of(content)
    known = None if pages is None else checksums.get(pages)
    if pages is not None and known is not None and content.nbytes:
        low = content.ctypes.data - address_of(pages)
        known.check(memoryview(pages), low, low + content.nbytes, hint)


class UnreadBytes:
    """Bytes of mapped files, of which each block is compared with its checksum before it is first read.

    Every check compares one block more than it must, so that after a while nothing is left to compare. A file that
    nothing else maps is not kept mapped for this.

    :param contents: the bytes, in any number of files
    """

    def __init__(self, contents: Iterable[NDArray[np.uint8]]) -> None:
        mapped = ((content, pages) for content in contents if (pages := mapping_of(content)) is not None)
        blocks = [
            (content.ctypes.data + start, min(CHECKSUM_BLOCK_NBYTES, len(content) - start), ref(pages))
            for content, pages in mapped
            for start in range(0, len(content), CHECKSUM_BLOCK_NBYTES)
        ]
        self._blocks = sorted(blocks, key=lambda block: block[0])
        self._begins = np.array([address for address, _, _ in self._blocks], np.uint64)
        #: For each block, and for the memory before the first one, whether it was not compared yet.
        self._is_left = np.append(False, np.ones(len(blocks), np.bool_))

    def check(self, addresses: NDArray[np.uint64], lengths: NDArray[np.int64], /) -> bool:
        """Compare the blocks that hold these bytes, and one more. Returns whether no block is left."""
        firsts = np.searchsorted(self._begins, addresses, "right")
        lasts = np.searchsorted(self._begins, addresses + lengths.astype(np.uint64) - np.uint64(1), "right")
        size = len(self._is_left)
        # From how many of the ranges each block is: those that begin up to it, without those that end before it.
        ranges = np.cumsum(np.bincount(firsts, minlength=size) - np.bincount(lasts + 1, minlength=size + 1)[:size])
        for number in [*np.flatnonzero(self._is_left & (ranges > 0)).tolist(), int(self._is_left.argmax())]:
            if self._is_left[number]:
                address, nbytes, mapping = self._blocks[number - 1]
                if (pages := mapping()) is not None:
                    low = address - address_of(pages)
                    checksums[pages].check(memoryview(pages), low, low + nbytes)
                self._is_left[number] = False
        return not self._is_left.any()
