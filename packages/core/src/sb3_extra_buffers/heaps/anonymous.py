"""Memory for payloads, straight from the operating system."""

from __future__ import annotations

import numpy as np

from sb3_extra_buffers.errors import HeapFullError
from sb3_extra_buffers.memory import Bytes, pages


def allocate(label: str, nbytes: int) -> Bytes:
    """Allocate ``nbytes`` of zeroed memory that goes back to the system as soon as the array is dropped.

    :param label: the heap's name, for the error
    :param nbytes: how much
    """
    try:
        return np.frombuffer(pages(nbytes), np.uint8)
    except MemoryError as error:
        hint = "The operating system refused the memory; use a smaller buffer, another codec, or the heap 'mmap'."
        raise HeapFullError(label, nbytes, 0, hint) from error
