"""Zeros straight from the operating system: no memory until they are written to, free when dropped."""

from __future__ import annotations

import math
import mmap
import sys
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

#: Less is not worth pages of its own.
_MIN_NBYTES = 1 << 14


def untouched(shape: int | tuple[int, ...], dtype: DTypeLike = np.uint8) -> NDArray[Any]:
    """What ``numpy.zeros`` returns, in memory that is taken page by page as it is written to.

    That of ``numpy.zeros`` may come from malloc, which must write zeros to what it uses again and keeps what was freed,
    or in pages so large that the first byte takes two megabytes.

    :param shape: of the array
    :param dtype: of its elements
    """
    kind = np.dtype(dtype)
    count = math.prod(shape) if isinstance(shape, tuple) else int(shape)
    if count * kind.itemsize < _MIN_NBYTES:
        return np.zeros(shape, kind)
    return np.frombuffer(pages(count * kind.itemsize), kind).reshape(shape)


def used_part(array: NDArray[Any]) -> NDArray[Any]:
    """What a pickle needs of an array of one dimension: all but the zeros at its end.

    :param array: from :func:`untouched`
    """
    used = np.flatnonzero(array)
    return array[: used[-1] + 1 if len(used) else 0].copy()


def extended(part: NDArray[Any], length: int) -> NDArray[Any]:
    """An array that begins with a part of it, in memory that is taken as it is written to.

    :param part: from :func:`used_part`
    :param length: of the array
    """
    whole = untouched(length, part.dtype)
    whole[: len(part)] = part
    return whole


def pages(nbytes: int) -> mmap.mmap:
    """Memory of the operating system, as the object that gives it back.

    :param nbytes: how much, rounded up to whole pages
    """
    try:
        if sys.platform == "win32":
            return mmap.mmap(-1, nbytes)
        # Private: mmap's default is shared, and a forked child would then write into its parent's buffer.
        return mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError, ValueError) as error:
        raise MemoryError(f"The operating system refused {nbytes:,} bytes.") from error
