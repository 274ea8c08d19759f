"""Bytes in memory: views without copies, allocation, mapped files. Codecs and heaps both build on it."""

from __future__ import annotations

import math
import mmap
import sys
from collections.abc import Sequence
from itertools import chain, starmap
from operator import setitem
from typing import Any, BinaryIO, Protocol, Union

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sb3_extra_buffers.errors import CellMismatchError, HeapStateError

#: Anything C-contiguous whose bytes can be read without a copy. Only the bytes count; alignment is never promised.
Buffer = Union[bytes, bytearray, memoryview, "NDArray[Any]"]
#: An array of bytes.
Bytes = NDArray[np.uint8]
#: Cell numbers, positions or lengths.
Indices = NDArray[np.int64]
#: Assignments ``target[key] = value``: all targets, all keys, all values.
Columns = tuple[Sequence[Any], Sequence[Any], Sequence[Any]]
NOTHING: Columns = ((), (), ())
#: The new value of an attribute: object, name, value.
Attribute = tuple[Any, str, Any]
#: Smaller arrays are not worth pages of their own.
_MIN_PAGES_NBYTES = 1 << 14


class ByteSource(Protocol):
    """A source of payloads: a heap, or a single array (:class:`~sb3_extra_buffers.memory.FlatBytes`).

    A position is a 64-bit number that only the source understands; a payload is contiguous in memory. Loops in
    Python ask for one view at a time, compiled kernels for all addresses at once. Both are valid until the source
    is next written to.
    """

    def view(self, start: int, length: int, /) -> memoryview:
        """The payload of ``length`` bytes at ``start``, without a copy."""

    def addresses(self, starts: Indices, lengths: Indices, /) -> NDArray[np.uint64]:
        """Memory addresses of many payloads. Raises if any of them does not lie inside the source."""


def view_bytes(owner: str, argument: str, buffer: Buffer, *, writable: bool = False) -> memoryview:
    """A flat view of the bytes of a buffer, or an error that says why there is none."""
    try:
        view = memoryview(buffer)
    except (TypeError, ValueError) as error:
        found = f"an object of type {type(buffer).__name__}"
        raise CellMismatchError(owner, argument, found, "bytes, a memoryview or an array of numbers") from error
    if not view.c_contiguous:
        # Input could be copied; output would end up in the copy.
        hint = "" if writable else "numpy.ascontiguousarray() makes one."
        raise CellMismatchError(owner, argument, "not C-contiguous", "a C-contiguous buffer", hint)
    if writable and view.readonly:
        raise CellMismatchError(owner, argument, "read-only", "a writable buffer")
    # A flat view of bytes is what slicing and assignment between views need. Most callers bring one already.
    return view if view.format == "B" and view.ndim == 1 else _flatten(view)


def _flatten(view: memoryview) -> memoryview:
    # memoryview.cast refuses big-endian formats, float16 and long double; numpy does not.
    return memoryview(np.asarray(view).reshape(-1).view(np.uint8))


def check_rows(
    owner: str, argument: str, rows: Bytes, count: int | None, nbytes: int, *, writable: bool = False
) -> None:
    """Refuse a batch that is not ``(count, nbytes)`` contiguous bytes. ``count=None`` accepts any number of rows."""
    _check_array(owner, argument, rows, writable)
    fits = rows.ndim == 2 and rows.shape[1] == nbytes and (count is None or len(rows) == count)
    if not fits or rows.dtype != np.uint8 or not rows.flags.c_contiguous:
        layout = "C-contiguous" if rows.flags.c_contiguous else "not C-contiguous"
        found = f"an array of {rows.dtype} with shape {rows.shape}, {layout}"
        expected = f"C-contiguous uint8 of shape ({'n' if count is None else count}, {nbytes})"
        hint = "Convert rows of another dtype or shape with rows.reshape(len(rows), -1).view(numpy.uint8)."
        raise CellMismatchError(owner, argument, found, expected, hint)


def check_room(owner: str, argument: str, out: Bytes, needed: int) -> None:
    """Refuse an array that does not offer ``needed`` contiguous writable bytes."""
    _check_array(owner, argument, out, writable=True)
    if out.dtype != np.uint8 or out.ndim != 1 or len(out) < needed or not out.flags.c_contiguous:
        found = f"an array of {out.dtype} with shape {out.shape}"
        raise CellMismatchError(owner, argument, found, f"at least {needed} contiguous uint8")


def _check_array(owner: str, argument: str, array: Bytes, writable: bool) -> None:
    if not isinstance(array, np.ndarray):
        raise CellMismatchError(owner, argument, f"an object of type {type(array).__name__}", "an array of uint8")
    if writable and not array.flags.writeable:
        raise CellMismatchError(owner, argument, "read-only", "a writable array")


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
        # Not start + length > size: a huge length would overflow and look small.
        outside = (starts < 0) | (lengths < 0) | (starts > len(self._view)) | (lengths > len(self._view) - starts)
        if outside.any():
            bad = int(outside.argmax())
            raise self._outside(starts.item(bad), lengths.item(bad))
        return starts.astype(np.uint64) + self._base

    def _outside(self, start: int, length: int) -> HeapStateError:
        asked, found = f"read {length} bytes at {start}", f"the array holds bytes 0 to {len(self._view)}"
        return HeapStateError("FlatBytes", asked, found)


def untouched(shape: int | tuple[int, ...], dtype: DTypeLike = np.uint8) -> NDArray[Any]:
    """An array of zeros whose memory is allocated page by page as it is written, and freed when the array is dropped.

    The memory of ``numpy.zeros`` may come from malloc, which writes zeros to memory that it reuses and keeps memory
    that was freed, or in pages so large that the first byte takes two megabytes.
    """
    kind = np.dtype(dtype)
    count = math.prod(shape) if isinstance(shape, tuple) else int(shape)
    if count * kind.itemsize < _MIN_PAGES_NBYTES:
        return np.zeros(shape, kind)
    return np.frombuffer(pages(count * kind.itemsize), kind).reshape(shape)


def pages(nbytes: int) -> mmap.mmap:
    """Anonymous memory from the operating system, freed when the object is dropped."""
    try:
        if sys.platform == "win32":
            return mmap.mmap(-1, nbytes)
        # Private: mmap's default is shared, and a forked child would then write into its parent's buffer.
        return mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError, ValueError) as error:
        raise MemoryError(f"The operating system refused {nbytes:,} bytes.") from error


def write_all(file: BinaryIO, content: bytes | memoryview) -> None:
    """Write all bytes: the system may accept fewer at a time."""
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]


def mapping_of(content: NDArray[Any] | memoryview) -> mmap.mmap | None:
    """The mapping that an array or view lies in; ``None`` if it lies in other memory."""
    owner: Any = content
    while owner is not None and not isinstance(owner, mmap.mmap):
        # numpy keeps a reference to the object that an array was made from, and a view has one to its object.
        owner = owner.obj if isinstance(owner, memoryview) else getattr(owner, "base", None)
    return owner


def address_of(mapping: mmap.mmap) -> int:
    """The address of the first byte of a mapping."""
    return np.frombuffer(mapping, np.uint8).ctypes.data


def publish(
    targets: Sequence[Any], keys: Sequence[Any], values: Sequence[Any], attributes: Sequence[Attribute] = ()
) -> None:
    """Carry out assignments ``target[key] = value``, and such to attributes: all of them or none.

    Python runs signal handlers and trace functions between instructions of Python code. This is one call of C code, so
    an interrupt comes before all of the changes or after them. Compute everything first, then publish.

    :param targets: arrays, views, lists or dicts, whose items are assigned to
    :param keys: a key for each; for an array no list, because numpy runs signal handlers while it converts one
    :param values: a value for each; for an array neither a list nor a tuple, for the same reason
    :param attributes: new values of attributes
    """
    items = map(setitem, targets, keys, values)
    # Everything returns None, so any() goes on to the end.
    any(chain(items, starmap(setattr, attributes)) if attributes else items)
