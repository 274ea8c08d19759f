"""Memory mappings of files: create them, place them over existing memory, advise the system about reading them."""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.memory import address_of, mapping_of

#: The value on Linux, on every processor.
_MAP_FIXED = 0x10
#: A page fault on Linux also maps up to this many bytes around it that are in the page cache, so some pages that were
#: released are mapped again.
_FAULT_AROUND_NBYTES = 1 << 16


def can_map() -> bool:
    """Whether file content can be mapped over existing memory. Elsewhere it is copied."""
    return sys.platform == "linux" and sys.maxsize > 1 << 32


def allocate_mappable(nbytes: int) -> NDArray[np.uint8]:
    """Allocate memory that files can be mapped over."""
    if not can_map():
        return np.empty(nbytes, np.uint8)
    return np.frombuffer(mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.uint8)


def is_mappable(array: NDArray[Any]) -> bool:
    """Whether files can be mapped over an array: it starts at a page of a mapping that it keeps alive."""
    pages = mapping_of(array)
    return can_map() and pages is not None and is_page_aligned(array.ctypes.data) and array.flags.c_contiguous


def is_page_aligned(*numbers: int) -> bool:
    """Whether addresses, offsets and sizes are multiples of the page size."""
    return not any(number % mmap.PAGESIZE for number in numbers)


def map_file(descriptor: int, nbytes: int) -> mmap.mmap:
    """Map a whole file read-only. The file may be closed, replaced or removed afterwards."""
    if not can_map():
        return mmap.mmap(descriptor, nbytes, access=mmap.ACCESS_READ)
    # Python's own mapping of a file keeps a descriptor open; a process may open about a thousand.
    pages = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ)
    _map_at(address_of(pages), nbytes, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
    return pages


def map_over(target: NDArray[np.uint8], descriptor: int, offset: int) -> None:
    """Map whole pages of a file over memory that :func:`is_mappable`, copy-on-write.

    The file may be closed, replaced or removed afterwards.
    """
    begin, nbytes = target.ctypes.data, target.nbytes
    if not is_page_aligned(begin, nbytes, offset):
        raise ValueError(f"{nbytes} bytes at address {begin}, byte {offset} of a file: not aligned to pages")
    if os.fstat(descriptor).st_size < offset + nbytes:  # reading there would end the process
        raise ValueError(f"a file has no {nbytes} bytes at {offset}")
    _map_at(begin, nbytes, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE, descriptor, offset)


def _map_at(begin: int, nbytes: int, protection: int, flags: int, descriptor: int, offset: int) -> None:
    if _mmap()(begin, nbytes, protection, flags | _MAP_FIXED, descriptor, offset) != begin:
        raise MemoryError(f"The operating system refused to map {nbytes:,} bytes of a file.")


@cache
def _mmap() -> Callable[..., Any]:
    # Python's mmap does not take an address.
    import ctypes

    function = ctypes.CDLL(None).mmap
    function.restype = ctypes.c_void_p
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_int64)
    return function


@contextmanager
def reading_once(block: memoryview) -> Iterator[None]:
    """Prefetch bytes that are read once, and release them afterwards: copying a file would leave all of it resident.

    Memory that is not a read-only mapping is not affected: releasing writable pages would lose their content.
    """
    mapping = mapping_of(block)
    if mapping is None or not memoryview(mapping).readonly:
        yield
        return
    begin = np.frombuffer(block, np.uint8).ctypes.data - address_of(mapping)
    _advise(mapping, "MADV_WILLNEED", begin, begin + block.nbytes)
    yield
    _advise(mapping, "MADV_DONTNEED", max(begin - _FAULT_AROUND_NBYTES, 0), begin + block.nbytes)


def _advise(mapping: mmap.mmap, option: str, begin: int, end: int) -> None:
    if hasattr(mmap, option):
        begin -= begin % mmap.PAGESIZE
        with suppress(OSError):  # advice is optional
            mapping.madvise(getattr(mmap, option), begin, end - begin)
