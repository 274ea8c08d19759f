"""A compiled loop around the decoder of the LZ4 library. Only imported where numba is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

_INT = ir.IntType(32)
_BYTES = ir.IntType(8).as_pointer()


def _intrinsic(function: Callable[..., Any]) -> Any:
    """numba's decorator. Callers do not pass the typing context."""
    return intrinsic(function)


@_intrinsic
def _decompress(typingctx: Any, function: Any, source: Any, target: Any, length: Any, nbytes: Any) -> Any:
    """Call ``int LZ4_decompress_safe(const char*, char*, int, int)`` by its address."""

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], ir.FunctionType(_INT, [_BYTES, _BYTES, _INT, _INT]).as_pointer())
        addresses = [builder.inttoptr(arg, _BYTES) for arg in args[1:3]]
        return builder.call(pointer, [*addresses, *(builder.trunc(arg, _INT) for arg in args[3:])])

    return types.int32(types.uint64, types.uint64, types.uint64, types.int64, types.int64), codegen


@_intrinsic
def _copy(typingctx: Any, target: Any, source: Any, nbytes: Any) -> Any:
    """Copy bytes between addresses that do not overlap."""

    def codegen(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        to, origin = (builder.inttoptr(arg, _BYTES) for arg in args[:2])
        cgutils.raw_memcpy(builder, to, origin, args[2], ir.Constant(ir.IntType(64), 1))  # type: ignore[no-untyped-call]
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64, types.int64), codegen


def _decode_rows(function: Any, addresses: Any, lengths: Any, out: Any) -> Any:
    nbytes, target = out.shape[1], types.uint64(out.ctypes.data)
    for row in range(len(addresses)):
        length = lengths[row]
        if length == nbytes:
            _copy(target, addresses[row], nbytes)
        elif not 0 < length < nbytes or _decompress(function, addresses[row], target, length, nbytes) != nbytes:
            return row
        target += types.uint64(nbytes)
    return -1


_SIGNATURE = types.int64(
    types.uint64,
    types.Array(types.uint64, 1, "A", readonly=True),
    types.Array(types.int64, 1, "A", readonly=True),
    types.Array(types.uint8, 2, "C"),
)
try:
    decode_rows: Any = njit(_SIGNATURE, nogil=True, cache=True)(_decode_rows)
except RuntimeError:  # numba finds no folder that it may write its cache to
    decode_rows = njit(_SIGNATURE, nogil=True)(_decode_rows)
