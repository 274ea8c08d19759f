"""The simplest source of payloads: one array."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import HeapStateError
from sb3_extra_buffers.memory.checks import view_bytes
from sb3_extra_buffers.memory.types import Bytes, Indices


class FlatBytes:
    """A single array of bytes as a source of payloads; a position is an offset into it.

    :param data: the array; it is kept, not copied
    """

    def __init__(self, data: Bytes) -> None:
        self._data = data  # keeps the memory behind the addresses alive
        self._view = view_bytes("FlatBytes", "data", data)
        self._base = np.uint64(data.ctypes.data)

    def view(self, start: int, length: int, /) -> memoryview:
        if start < 0 or length < 0 or start + length > len(self._view):
            raise self._outside(start, length)
        return self._view[start : start + length]

    def addresses(self, starts: Indices, lengths: Indices, /) -> NDArray[np.uint64]:
        # Not «start + length > size»: a huge length would overflow and look small.
        outside = (starts < 0) | (lengths < 0) | (starts > len(self._view)) | (lengths > len(self._view) - starts)
        if outside.any():
            bad = int(outside.argmax())
            raise self._outside(starts.item(bad), lengths.item(bad))
        return starts.astype(np.uint64) + self._base

    def _outside(self, start: int, length: int) -> HeapStateError:
        asked, found = f"read {length} bytes at {start}", f"the array holds bytes 0 to {len(self._view)}"
        return HeapStateError("FlatBytes", asked, found)
