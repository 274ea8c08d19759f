"""Compilation of kernels, and raw memory for them: words and blocks at any address, aligned or not.

Kernels are compiled when this package is first used, run without the interpreter lock, and are cached on disk.

numba's arrays assume aligned elements and check for negative indices; payloads in a heap are not aligned, and the
checks keep LLVM from using wide stores. The intrinsics here compile to single instructions (or ``memcpy``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from llvmlite import ir
from numba import config, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from sb3_extra_buffers.frames import streams

F = TypeVar("F", bound=Callable[..., Any])

# error_model: as in C, division by zero is not checked; it does not happen.
# No parallel=True: its OpenMP runtime kills forked children. The caller uses threads.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}

#: Bytes that :func:`copy_block` copies at a time.
BLOCK = 64
#: Number of pixels that :func:`deinterleave` splits at a time.
LANES = 32

if config.DISABLE_JIT:  # type: ignore[attr-defined]  # set from the environment
    raise ImportError("NUMBA_DISABLE_JIT is set, and these kernels work on addresses, which only compiled code can")


def _digest() -> str:
    """A digest of all sources that kernels are made of."""
    digest = hashlib.sha256()
    for folder in (Path(__file__).parent, Path(streams.__file__).parent):
        for path in sorted(folder.glob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


_SOURCES = _digest()


def helper(function: F) -> F:
    """A function that kernels call; compiled with them."""
    compiled: F = njit(forceinline=True, **_OPTIONS)(function)
    return compiled


def outlined(function: F) -> F:
    """A function that kernels rarely call; compiled on its own, so that the code around the call stays small."""
    compiled: F = njit(**_OPTIONS)(function)
    return compiled


def kernel(signature: Any) -> Callable[[F], F]:
    """A function that Python calls, compiled at once or loaded from the disk cache."""

    def decorate(function: F) -> F:
        try:
            dispatcher = njit(cache=True, **_OPTIONS)(function)
            # numba compares the time stamp of the kernel's own file only; helpers may be in other files.
            stamped = dispatcher._cache._cache_file
            stamped._source_stamp = (stamped._source_stamp, _SOURCES)
            dispatcher.compile(signature)
            dispatcher.disable_compile()
        except (RuntimeError, OSError, AttributeError) as error:
            if isinstance(error, RuntimeError) and "cannot cache function" not in str(error):
                raise
            # The cache is not writable, the disk is full, or this numba keeps its stamps elsewhere: compile in every
            # process.
            dispatcher = njit(signature, **_OPTIONS)(function)
        compiled: F = dispatcher
        return compiled

    return decorate


def _intrinsic(function: Callable[..., Any]) -> Any:
    """numba's decorator. Callers do not pass the typing context."""
    return intrinsic(function)


def _intrinsic_of_literals(function: Callable[..., Any]) -> Any:
    """The same, but literal arguments keep their values, not only their types."""
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
    """Copy ``nbytes`` bytes between addresses that do not overlap."""

    def codegen(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        byte_pointer = ir.IntType(8).as_pointer()
        to, origin = (builder.inttoptr(arg, byte_pointer) for arg in args[:2])
        cgutils.raw_memcpy(builder, to, origin, args[2], ir.Constant(ir.IntType(64), 1))  # type: ignore[no-untyped-call]
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64, types.uint64), codegen


@_intrinsic
def copy_block(typingctx: Any, target: Any, source: Any) -> Any:
    """Copy :data:`BLOCK` bytes through registers: they are read before any of them is written."""

    def codegen(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        block_pointer = ir.VectorType(ir.IntType(8), BLOCK).as_pointer()
        block = builder.load(builder.inttoptr(args[1], block_pointer), align=1)
        builder.store(block, builder.inttoptr(args[0], block_pointer), align=1)
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64), codegen


@_intrinsic
def prefetch(typingctx: Any, address: Any) -> Any:
    """Prefetch the memory at ``address``, which need not exist."""

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
    """Split :data:`LANES` pixels at ``source``: the first channel to ``target``, each other one ``stride`` further.

    ``channels`` is a literal number. LLVM does not turn a loop over pixels into shuffles of wide registers by itself;
    they take an eighth of the time.
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
    """Number of low zero bits of a word, which is not 0."""

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), codegen
