"""Memory from the operating system: zeroed pages, and mapped files."""

from __future__ import annotations

import math
import mmap
import sys
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

#: Smaller arrays are not worth pages of their own.
_MIN_PAGES_NBYTES = 1 << 14


def untouched(shape: int | tuple[int, ...], dtype: DTypeLike = np.uint8) -> NDArray[Any]:
    """An array of zeros whose memory is allocated page by page as it is written, and freed when the array is dropped.

    The memory of ``numpy.zeros`` may come from malloc, which writes zeros to memory that it reuses and keeps memory
    that was freed, or in pages so large that the first byte takes two megabytes.
    """
    kind = np.dtype(dtype)
    count = math.prod(shape) if isinstance(shape, tuple) else int(shape)
    if count * kind.itemsize < _MIN_PAGES_NBYTES:
        return np.zeros(shape, kind)
    return np.frombuffer(pages(count * kind.itemsize), kind).reshape(shape)


def pages(nbytes: int) -> mmap.mmap:
    """Anonymous memory from the operating system, freed when the object is dropped."""
    try:
        if sys.platform == "win32":
            return mmap.mmap(-1, nbytes)
        # Private: mmap's default is shared, and a forked child would then write into its parent's buffer.
        return mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError, ValueError) as error:
        raise MemoryError(f"The operating system refused {nbytes:,} bytes.") from error


def write_all(file: BinaryIO, content: bytes | memoryview) -> None:
    """Write all bytes: the system may accept fewer at a time."""
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]


def mapping_of(content: NDArray[Any] | memoryview) -> mmap.mmap | None:
    """The mapping that an array or view lies in; ``None`` if it lies in other memory."""
    owner: Any = content
    while owner is not None and not isinstance(owner, mmap.mmap):
        # numpy keeps a reference to the object that an array was made from, and a view has one to its object.
        owner = owner.obj if isinstance(owner, memoryview) else getattr(owner, "base", None)
    return owner


def address_of(mapping: mmap.mmap) -> int:
    """The address of the first byte of a mapping."""
    return np.frombuffer(mapping, np.uint8).ctypes.data
