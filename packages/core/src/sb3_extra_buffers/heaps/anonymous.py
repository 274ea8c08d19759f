"""Memory straight from the operating system: free when dropped, unused until touched."""

from __future__ import annotations

import mmap
import sys

import numpy as np

from sb3_extra_buffers.errors import HeapFullError
from sb3_extra_buffers.views import Bytes


def allocate(label: str, nbytes: int) -> Bytes:
    """Allocate ``nbytes`` of zeroed memory that goes back to the system as soon as the array is dropped.

    ``numpy.empty`` would take it from malloc, which may keep it for itself after it was freed.

    :param label: the heap's name, for the error
    :param nbytes: how much
    """
    try:
        if sys.platform == "win32":
            region = mmap.mmap(-1, nbytes)
        else:
            # Private: mmap's default is shared, and a forked child would then write into its parent's buffer.
            region = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError, ValueError) as error:
        hint = "The operating system refused the memory; use a smaller buffer, another codec, or the heap 'mmap'."
        raise HeapFullError(label, nbytes, 0, hint) from error
    return np.frombuffer(region, np.uint8)
