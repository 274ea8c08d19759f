"""``rle-jit``: the run-length codec ``rle``, compiled by numba. Each reads the payloads of the other, byte for byte.

``docs/rle-format.md`` describes the payload. The kernels work on addresses and hold no state. One compilation serves
every dtype: elements are compared and written as bytes, and the sizes of an element and of a run end are arguments.

Everything is ``uint64``: numba adds ``uint64`` and ``int64`` as floats, and signed indices cost a check each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from sb3_extra_buffers.codecs import Automatic, CellSpec, CodecPlugin, CodecSpec, bind, hookimpl
from sb3_extra_buffers.codecs.rle import end_dtype
from sb3_extra_buffers.errors import PayloadError
from sb3_extra_buffers.memory import Buffer, Bytes, ByteSource, Indices, check_room, check_rows, view_bytes
from sb3_extra_buffers_codec_rle_numba.jit import copy, helper, kernel, load, store, trailing_zeros

U = np.uint64
_WORD = U(0)
# Outputs are declared writable, so that numba refuses a read-only array instead of writing to it.
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
        # Whole blocks may overshoot the run, into bytes that the next run writes, but never the end of the cell.
        # A short block first: most runs of an image are a few bytes long.
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
    """Write one cell to ``out``; return whether the payload is valid."""
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
    """Encode every row into ``out``, contiguously, and write the lengths of the payloads."""
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
        # Images are bytes with two-byte run ends. With constants, this case is twice as fast.
        if item == U(1) and width == U(2):
            sound = _decode(payload, length, nbytes, U(1), U(2), row)
        else:
            sound = _decode(payload, length, nbytes // item, item, width, row)
        if not sound:
            return np.int64(index)
    return np.int64(-1)


class RleJitCodec:
    """Run-length encoding at memory speed.

    :param spec: name and parameters
    :param cell: the cell to bind to
    """

    detects_corruption = False
    min_nbytes_per_thread = 1 << 22

    def __init__(self, spec: CodecSpec, cell: CellSpec) -> None:
        self.spec = spec
        self.cell = cell
        self.max_encoded_nbytes = cell.nbytes
        self._item = np.uint64(cell.dtype.itemsize)
        self._width = np.uint64(end_dtype(cell.count).itemsize)

    def encode(self, cell: Buffer, /) -> Bytes:
        view = self.cell.view(self.spec.name, "cell", cell)
        payload = np.empty(self.max_encoded_nbytes, np.uint8)
        length = self.encode_batch(np.frombuffer(view, np.uint8)[np.newaxis], payload)[0]
        return payload[:length].copy()  # a copy, to free the memory of the worst case

    def decode_into(self, payload: Buffer, out: Buffer, /) -> None:
        target = self.cell.view(self.spec.name, "out", out, writable=True)
        source = np.frombuffer(view_bytes(self.spec.name, "payload", payload), np.uint8)
        address, length = np.array([source.ctypes.data], np.uint64), np.array([len(source)], np.int64)
        if decode_rows(address, length, self._item, self._width, np.frombuffer(target, np.uint8)[np.newaxis]) >= 0:
            raise self._damaged(len(source))

    def encode_batch(self, rows: Bytes, out: Bytes, /) -> Indices:
        # Kernels write to any address, so sizes are checked here, even if the caller has checked them.
        check_rows(self.spec.name, "rows", rows, None, self.cell.nbytes)
        check_room(self.spec.name, "out", out, len(rows) * self.max_encoded_nbytes)
        lengths = np.empty(len(rows), np.int64)
        encode_rows(rows, self._item, self._width, out, np.empty(self.cell.nbytes, np.uint8), lengths)
        return lengths

    def decode_batch(self, source: ByteSource, starts: Indices, lengths: Indices, out: Bytes, /) -> None:
        check_rows(self.spec.name, "out", out, len(starts), self.cell.nbytes, writable=True)
        index = decode_rows(source.addresses(starts, lengths), lengths, self._item, self._width, out)
        if index >= 0:
            raise self._damaged(int(lengths[index]), int(index))

    def _damaged(self, nbytes: int, index: int | None = None) -> PayloadError:
        problem = f"its runs do not add up to {self.cell.count} elements"
        return PayloadError(self.spec.name, nbytes, problem, index)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.spec} for {self.cell}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return bind, (self.spec, self.cell)


@hookimpl
def sb3_extra_buffers_codec() -> CodecPlugin:
    return CodecPlugin(
        protocol=1,
        factory=RleJitCodec,
        summary="Run-length encoding compiled by numba",
        automatic=Automatic(decode_cost=7, general=False, call_cost=8_000),
    )
