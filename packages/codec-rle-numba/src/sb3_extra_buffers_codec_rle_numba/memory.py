"""Raw memory for compiled kernels: words and blocks at any address, aligned or not.

numba's arrays assume aligned elements and check for negative indices; payloads in a heap are not aligned, and the
checks keep LLVM from using wide stores. These intrinsics compile to single instructions (or ``memcpy``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

#: How many pixels are taken apart at a time.
LANES = 32


def _intrinsic(function: Callable[..., Any]) -> Any:
    """numba's decorator, which takes the typing context away from the arguments that callers give."""
    return intrinsic(function)


def _intrinsic_of_literals(function: Callable[..., Any]) -> Any:
    """Likewise, but it is told the numbers that callers write down, not only of which type they are."""
    return intrinsic(prefer_literal=True)(function)


@_intrinsic
def load(typingctx: Any, address: Any, kind: Any) -> Any:
    """Read the word at ``address``; its type is that of ``kind``, whose value is ignored."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value_type = context.get_value_type(signature.return_type)
        pointer = builder.inttoptr(args[0], value_type.as_pointer())
        return builder.load(pointer, align=1)

    return kind(types.uint64, kind), codegen


@_intrinsic
def store(typingctx: Any, address: Any, value: Any) -> Any:
    """Write ``value`` at ``address``, as wide as its type."""

    def codegen(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], args[1].type.as_pointer())
        builder.store(args[1], pointer, align=1)
        return context.get_dummy_value()

    return types.void(types.uint64, value), codegen


@_intrinsic
def copy(typingctx: Any, target: Any, source: Any, nbytes: Any) -> Any:
    """Copy ``nbytes`` bytes between places that do not overlap."""

    def codegen(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        byte_pointer = ir.IntType(8).as_pointer()
        to, origin = (builder.inttoptr(arg, byte_pointer) for arg in args[:2])
        cgutils.raw_memcpy(builder, to, origin, args[2], ir.Constant(ir.IntType(64), 1))  # type: ignore[no-untyped-call]
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64, types.uint64), codegen


@_intrinsic
def prefetch(typingctx: Any, address: Any) -> Any:
    """Ask for the memory at ``address``, which need not exist."""

    def codegen(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        byte_pointer = ir.IntType(8).as_pointer()
        flag = ir.IntType(32)
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte_pointer], ir.FunctionType(ir.VoidType(), [byte_pointer, flag, flag, flag])
        )
        builder.call(function, [builder.inttoptr(args[0], byte_pointer), flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.void(types.uint64), codegen


@_intrinsic_of_literals
def deinterleave(typingctx: Any, source: Any, target: Any, stride: Any, channels: Any) -> Any:
    """Take :data:`LANES` pixels at ``source`` apart: their first channel to ``target``, each other ``stride`` further.

    ``channels`` is a plain number in the source text. LLVM does not find out by itself that a loop over pixels comes to
    shuffles of wide registers, which take an eighth of its time.
    """

    def codegen(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        byte, count = ir.IntType(8), channels.literal_value
        pixels = builder.load(builder.inttoptr(args[0], ir.VectorType(byte, LANES * count).as_pointer()), align=1)
        place = args[1]
        for channel in range(count):
            mask = [channel + count * pixel for pixel in range(LANES)]
            plane = builder.shuffle_vector(pixels, pixels, ir.Constant(ir.VectorType(ir.IntType(32), LANES), mask))
            builder.store(plane, builder.inttoptr(place, plane.type.as_pointer()), align=1)
            place = builder.add(place, args[2])
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64, types.uint64, channels), codegen


@_intrinsic
def trailing_zeros(typingctx: Any, word: Any) -> Any:
    """How many low bits of a word (not 0) are 0."""

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), codegen
