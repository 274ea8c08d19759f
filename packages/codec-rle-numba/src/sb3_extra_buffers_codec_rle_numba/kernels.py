"""Run lengths, compiled. The bytes are those of core's ``rle``; ``docs/rle-format.md`` describes them.

The kernels work on addresses, hold no state, and run without the interpreter lock. One compilation serves every dtype:
elements are compared and written as bytes, and the sizes of an element and of a run end are plain arguments.

Everything is ``uint64``: numba adds ``uint64`` and ``int64`` as floats, and signed indices cost a check each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from sb3_extra_buffers_codec_rle_numba.jit import helper, kernel
from sb3_extra_buffers_codec_rle_numba.memory import copy, load, store, trailing_zeros

U = np.uint64
_WORD = U(0)
# What is written to is declared writable: numba then refuses a read-only array instead of writing to it all the same.
_BYTES = types.Array(types.uint8, 1, "C")
_ROWS = types.Array(types.uint8, 2, "C")
_CELLS = types.Array(types.uint8, 2, "C", readonly=True)
_LENGTHS = types.Array(types.int64, 1, "A", readonly=True)
_ADDRESSES = types.Array(types.uint64, 1, "C", readonly=True)


@helper
def _load_end(address: Any, width: Any) -> Any:
    if width == U(2):
        return U(load(address, np.uint16(0)))
    if width == U(1):
        return U(load(address, np.uint8(0)))
    return U(load(address, np.uint32(0))) if width == U(4) else load(address, _WORD)


@helper
def _store_end(address: Any, end: Any, width: Any) -> None:
    if width == U(2):
        store(address, np.uint16(end))
    elif width == U(1):
        store(address, np.uint8(end))
    elif width == U(4):
        store(address, np.uint32(end))
    else:
        store(address, end)


@helper
def _last_of_run(cell: Any, element: Any, last: Any, item: Any) -> Any:
    """The first element from ``element`` on that differs from its successor, or ``last``."""
    byte, limit = element * item, last * item
    while byte + U(8) <= limit:
        differing = load(cell + byte, _WORD) ^ load(cell + byte + item, _WORD)
        if differing:
            return (byte + (trailing_zeros(differing) >> U(3))) // item
        byte += U(8)
    while byte < limit:
        if load(cell + byte, np.uint8(0)) != load(cell + byte + item, np.uint8(0)):
            return byte // item
        byte += U(1)
    return last


@helper
def _encode(cell: Any, count: Any, item: Any, width: Any, out: Any, scratch: Any) -> Any:
    """Write the payload of one cell to ``out`` and return its length. Both targets have room for the raw cell."""
    nbytes, last = count * item, count - U(1)
    most = (nbytes - U(1)) // (width + item)  # with one run more, the payload would not be shorter than the cell
    runs = element = U(0)
    while runs < most:
        index = _last_of_run(cell, element, last, item)
        _store_end(out + runs * width, index + U(1), width)
        if item == U(1):
            store(scratch + runs, load(cell + index, np.uint8(0)))
        else:
            copy(scratch + runs * item, cell + index * item, item)
        runs += U(1)
        if index == last:
            copy(out + runs * width, scratch, runs * item)
            return runs * (width + item)
        element = index + U(1)
    copy(out, cell, nbytes)
    return nbytes


@helper
def _repeated(address: Any, item: Any) -> Any:
    """Eight bytes full of the element at ``address``, which is at most eight bytes wide."""
    if item == U(1):
        return U(load(address, np.uint8(0))) * U(0x0101010101010101)
    if item == U(2):
        return U(load(address, np.uint16(0))) * U(0x0001000100010001)
    return U(load(address, np.uint32(0))) * U(0x0000000100000001) if item == U(4) else load(address, _WORD)


@helper
def _fill(out: Any, begin: Any, stop: Any, nbytes: Any, value: Any, item: Any) -> None:
    """Fill bytes ``begin`` to ``stop`` of a cell with copies of one element."""
    if item > U(8):
        while begin < stop:
            copy(out + begin, value, item)
            begin += item
        return
    word = _repeated(value, item)
    if stop + U(32) <= nbytes:
        # Whole blocks may run over the end of the run, into bytes that the next run writes, never over the cell's end.
        # A short one first: most runs of an image are a few bytes long.
        store(out + begin, word)
        store(out + begin + U(8), word)
        begin += U(16)
        while begin < stop:
            store(out + begin, word)
            store(out + begin + U(8), word)
            store(out + begin + U(16), word)
            store(out + begin + U(24), word)
            begin += U(32)
        return
    while begin + U(8) <= stop:
        store(out + begin, word)
        begin += U(8)
    while begin < stop:
        store(out + begin, np.uint8(word))
        word = (word >> U(8)) | (word << U(56))
        begin += U(1)


@helper
def _decode(payload: Any, length: Any, count: Any, item: Any, width: Any, out: Any) -> Any:
    """Write one cell to ``out``; return whether the payload is sound."""
    nbytes = count * item
    if length == nbytes:
        copy(out, payload, nbytes)
        return True
    runs = length // (width + item)
    if length > nbytes or runs * (width + item) != length:
        return False
    values, begin = payload + runs * width, U(0)
    for run in range(runs):
        end = _load_end(payload + U(run) * width, width)
        if end <= begin or end > count:
            return False
        _fill(out, begin * item, end * item, nbytes, values + U(run) * item, item)
        begin = end
    return begin == count


@kernel(types.void(_CELLS, types.uint64, types.uint64, _BYTES, _BYTES, types.int64[::1]))
def encode_rows(rows: Any, item: Any, width: Any, out: Any, scratch: Any, lengths: Any) -> None:
    """Encode every row into ``out``, one payload behind the other, and note their lengths."""
    nbytes, end = U(rows.shape[1]), U(out.ctypes.data)
    for index in range(U(rows.shape[0])):
        cell = U(rows.ctypes.data) + U(index) * nbytes
        if item == U(1) and width == U(2):
            length = _encode(cell, nbytes, U(1), U(2), end, U(scratch.ctypes.data))
        else:
            length = _encode(cell, nbytes // item, item, width, end, U(scratch.ctypes.data))
        lengths[index] = length
        end += length


@kernel(types.int64(_ADDRESSES, _LENGTHS, types.uint64, types.uint64, _ROWS))
def decode_rows(addresses: Any, lengths: Any, item: Any, width: Any, out: Any) -> Any:
    """Decode payload ``i`` into row ``i``; return the index of the first that is damaged, or -1."""
    nbytes, base = U(out.shape[1]), U(out.ctypes.data)
    for index in range(U(len(addresses))):
        payload, length, row = addresses[index], U(lengths[index]), base + U(index) * nbytes
        # Images are bytes with two-byte run ends. Said with constants, that case compiles to twice the speed.
        if item == U(1) and width == U(2):
            sound = _decode(payload, length, nbytes, U(1), U(2), row)
        else:
            sound = _decode(payload, length, nbytes // item, item, width, row)
        if not sound:
            return np.int64(index)
    return np.int64(-1)
