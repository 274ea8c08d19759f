"""``Seal``: the checksums of a mapped file, for whoever copies parts of it: a copy must not make damage look sound."""

from __future__ import annotations

import mmap
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from weakref import WeakKeyDictionary
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.checkpoints.checksums import BLOCK_NBYTES, block_count
from sb3_extra_buffers.checkpoints.layout import OF_BLOCKS, Layout
from sb3_extra_buffers.checkpoints.passing import Passage
from sb3_extra_buffers.errors import FileDamagedError
from sb3_extra_buffers.memory import address_of, mapping_of

_HINT = "Nothing of it is saved again: that would give it a checksum that fits. Use another copy of it."


@dataclass(frozen=True)
class Seal:
    """What is known of the bytes of a file. It does not keep the file mapped.

    :param path: which file
    :param begin: where its data begin
    :param layout: what they are
    """

    path: Path
    begin: int
    layout: Layout

    def damage(self, content: memoryview, low: int, high: int) -> Iterator[str]:
        """Every block that is not what its checksum says, in words.

        :param content: of the whole file
        :param low: a place in the file; blocks that end before it are not looked at
        :param high: nor those that begin here or behind
        """
        table, (ends, numbers) = self.layout.checksums, self._index
        sums = np.frombuffer(content[self.begin + table.begin : self.begin + table.end], "<u4")
        # Of a file of which little shall be in memory, a look at all of it leaves nothing there.
        passage = Passage(np.frombuffer(content, np.uint8))
        for place in range(bisect_right(ends, low - self.begin), len(ends)):
            entry, number = self.layout.entries[place], numbers[place]
            begin, count = self.begin + entry.begin, block_count(entry.nbytes)
            if begin >= high:
                break
            first, last = max(0, (low - begin) // BLOCK_NBYTES), min(count, block_count(high - begin))
            for index in range(first, last):
                start, end = index * BLOCK_NBYTES, min((index + 1) * BLOCK_NBYTES, entry.nbytes)
                passage.ahead(begin + start, end - start)
                if crc32(content[begin + start : begin + end]) != sums[number + index]:
                    yield f"{entry.name!r}, bytes {start} to {end - 1}"
                passage.behind(begin + start, end - start)

    @cached_property
    def _index(self) -> tuple[list[int], list[int]]:
        """For each array, where it ends and the number of its first checksum: parts are looked for many times."""
        ends = [entry.end for entry in self.layout.entries]
        counts = (block_count(entry.nbytes) for entry in self.layout.entries)
        return ends, list(accumulate(counts, initial=OF_BLOCKS))

    def check(self, content: memoryview, low: int, high: int) -> None:
        """Refuse bytes that would be copied, if one of their blocks is damaged. Parameters as above."""
        damage = tuple(self.damage(content, low, high))
        if damage:
            raise FileDamagedError(str(self.path), damage, _HINT)


#: By the mapping, as long as something of it is in use.
_seals: WeakKeyDictionary[mmap.mmap, Seal] = WeakKeyDictionary()


def remember(content: memoryview, seal: Seal) -> None:
    """Note which file a mapping is of."""
    pages = mapping_of(content)
    assert pages is not None
    _seals[pages] = seal


def check_origin(content: NDArray[np.uint8]) -> None:
    """Refuse bytes that lie in a mapped file and are damaged. What is in memory has no origin, and is fine.

    :param content: bytes, contiguous
    """
    pages = mapping_of(content)
    seal = None if pages is None else _seals.get(pages)
    if pages is not None and seal is not None and content.nbytes:
        low = content.ctypes.data - address_of(pages)
        seal.check(memoryview(pages), low, low + content.nbytes)
