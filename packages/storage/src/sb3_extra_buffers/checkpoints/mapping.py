"""Parts of files in the place of memory: read when they are looked at, and what is written there stays here."""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.memory import mapping_of

#: Of Linux, on every processor.
_MAP_FIXED = 0x10


def can_map() -> bool:
    """Whether the system lets a part of a file take the place of memory. Elsewhere, content is copied."""
    return sys.platform == "linux" and sys.maxsize > 1 << 32


def mappable(nbytes: int) -> NDArray[np.uint8]:
    """Memory that parts of files can take the place of.

    :param nbytes: how much
    """
    if not can_map():
        return np.empty(nbytes, np.uint8)
    return np.frombuffer(mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.uint8)


def is_mappable(array: NDArray[Any]) -> bool:
    """Whether parts of files can take the place of an array: it begins a page of a mapping that it keeps alive."""
    pages = mapping_of(array)
    return can_map() and pages is not None and is_page(array.ctypes.data) and array.flags.c_contiguous


def is_page(number: int) -> bool:
    """Whether a page begins here."""
    return number % mmap.PAGESIZE == 0


def mapped(descriptor: int, nbytes: int) -> memoryview:
    """A file to be read, which may be closed, replaced or removed afterwards.

    :param descriptor: of the file
    :param nbytes: its size
    """
    if not can_map():
        return memoryview(mmap.mmap(descriptor, nbytes, access=mmap.ACCESS_READ))
    # Python's own mapping of a file keeps a descriptor for life; a process has about a thousand of them.
    pages = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ)
    content = np.frombuffer(pages, np.uint8)
    _map_at(content.ctypes.data, nbytes, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
    return memoryview(pages)


def map_over(target: NDArray[np.uint8], descriptor: int, offset: int) -> None:
    """Let bytes of an open file take the place of memory. The file may be closed, replaced or removed afterwards.

    :param target: whole pages of what :func:`is_mappable`; who gives back that mapping gives back this one with it
    :param descriptor: of the file
    :param offset: the first byte; where a page begins
    """
    begin, nbytes = target.ctypes.data, target.nbytes
    if not (is_page(begin) and is_page(nbytes) and is_page(offset)):
        raise ValueError(f"{nbytes} bytes at {begin}, and byte {offset} of a file, are no whole pages")
    if os.fstat(descriptor).st_size < offset + nbytes:  # to look there would end the process
        raise ValueError(f"a file has no {nbytes} bytes at {offset}")
    _map_at(begin, nbytes, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE, descriptor, offset)


def _map_at(begin: int, nbytes: int, protection: int, flags: int, descriptor: int, offset: int) -> None:
    if _mmap()(begin, nbytes, protection, flags | _MAP_FIXED, descriptor, offset) != begin:
        raise MemoryError(f"The operating system refused to map {nbytes:,} bytes of a file.")


@cache
def _mmap() -> Callable[..., Any]:
    # Python's own cannot be told where.
    import ctypes

    function = ctypes.CDLL(None).mmap
    function.restype = ctypes.c_void_p
    numbers = (ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64)
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *numbers)
    return function
