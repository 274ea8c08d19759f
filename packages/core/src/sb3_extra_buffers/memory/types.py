"""How this project names bytes, positions and the places that payloads are read from."""

from __future__ import annotations

from typing import Any, Protocol, Union

import numpy as np
from numpy.typing import NDArray

#: Anything C-contiguous whose bytes can be read without a copy. Only the bytes count; alignment is never promised.
Buffer = Union[bytes, bytearray, memoryview, "NDArray[Any]"]
#: An array of bytes.
Bytes = NDArray[np.uint8]
#: Cell numbers, positions or lengths.
Indices = NDArray[np.int64]


class ByteSource(Protocol):
    """Where payloads are read from: a heap, or a single array (:class:`~sb3_extra_buffers.memory.FlatBytes`).

    A position is a 64-bit number that only the source understands; a payload is contiguous in memory. Loops in
    Python ask for one view at a time, compiled kernels for all addresses at once. Both are valid until the source
    is next written to.
    """

    def view(self, start: int, length: int, /) -> memoryview:
        """The payload of ``length`` bytes at ``start``, without a copy."""

    def addresses(self, starts: Indices, lengths: Indices, /) -> NDArray[np.uint64]:
        """Memory addresses of many payloads. Raises if any of them does not lie inside the source."""
