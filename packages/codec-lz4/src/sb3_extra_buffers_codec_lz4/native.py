"""The decoder of the LZ4 library itself, which the extension module of ``lz4`` exports on most platforms.

It reads a payload at its address and writes the cell into its row: without a copy, without a Python object per cell,
and without the interpreter lock. Where it is not exported, the codec calls the Python functions of ``lz4``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

import lz4.block
import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.memory import Bytes, Indices

#: Sizes are passed as ``int``.
MAX_NBYTES = 2**31 - 1

#: Decodes payloads at addresses into the rows of an array; returns the first that failed, or -1.
Decoder = Callable[[NDArray[np.uint64], Indices, Bytes], int]


@cache
def library() -> Any:
    """``LZ4_decompress_safe`` as a function of ctypes; ``None`` if the extension module does not export it."""
    try:
        function = ctypes.CDLL(lz4.block._block.__file__).LZ4_decompress_safe
    except (AttributeError, OSError):
        return None
    function.restype = ctypes.c_int
    function.argtypes = (ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_int)
    return function


@cache
def decoder() -> Decoder | None:
    """A batch decoder: a compiled loop where numba is installed; ``None`` without the library's function."""
    if library() is None:
        return None
    if find_spec("numba") is None:
        return _decode_by_ctypes
    from sb3_extra_buffers_codec_lz4.compiled import decode_rows

    address = np.uint64(ctypes.cast(library(), ctypes.c_void_p).value or 0)
    return lambda addresses, lengths, out: int(decode_rows(address, addresses, lengths, out))


def _decode_by_ctypes(addresses: NDArray[np.uint64], lengths: Indices, out: Bytes) -> int:
    count, nbytes = out.shape
    rows = range(out.ctypes.data, out.ctypes.data + out.nbytes, nbytes)
    done = map(library(), addresses.tolist(), rows, lengths.tolist(), (nbytes,) * count)
    found = np.fromiter(done, np.int64, count)
    raw = np.flatnonzero(lengths == nbytes)
    for row in raw.tolist():
        ctypes.memmove(rows[row], addresses.item(row), nbytes)
    found[raw] = nbytes
    wrong = (found != nbytes) | (lengths < 1) | (lengths > nbytes)
    return int(wrong.argmax()) if wrong.any() else -1
