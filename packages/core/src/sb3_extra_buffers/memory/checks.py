"""Buffers seen as bytes, checked and without a copy."""

from __future__ import annotations

import numpy as np

from sb3_extra_buffers.errors import CellMismatchError
from sb3_extra_buffers.memory.types import Buffer, Bytes


def view_bytes(owner: str, argument: str, buffer: Buffer, *, writable: bool = False) -> memoryview:
    """See a buffer as a flat sequence of bytes, or say precisely why that cannot be done.

    :param owner: who asks, for the error
    :param argument: the argument's name, for the error
    :param buffer: any object with the buffer protocol
    :param writable: whether it will be written to
    """
    try:
        view = memoryview(buffer)
    except (TypeError, ValueError) as error:
        found = f"an object of type {type(buffer).__name__}"
        raise CellMismatchError(owner, argument, found, "bytes, a memoryview or an array of numbers") from error
    if not view.c_contiguous:
        # A copy would do for what is read; what is written would end up in the copy.
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
    if not isinstance(rows, np.ndarray):
        raise CellMismatchError(owner, argument, f"an object of type {type(rows).__name__}", "an array of uint8")
    fits = rows.ndim == 2 and rows.shape[1] == nbytes and (count is None or len(rows) == count)
    if not fits or rows.dtype != np.uint8 or not rows.flags.c_contiguous:
        layout = "C-contiguous" if rows.flags.c_contiguous else "not C-contiguous"
        found = f"an array of {rows.dtype} with shape {rows.shape}, {layout}"
        expected = f"C-contiguous uint8 of shape ({'n' if count is None else count}, {nbytes})"
        hint = "Rows of another dtype or shape are seen as bytes by rows.reshape(len(rows), -1).view(numpy.uint8)."
        raise CellMismatchError(owner, argument, found, expected, hint)
    if writable and not rows.flags.writeable:
        raise CellMismatchError(owner, argument, "read-only", "a writable array")


def check_room(owner: str, argument: str, out: Bytes, needed: int) -> None:
    """Refuse an array that does not offer ``needed`` writable bytes in a row."""
    if not isinstance(out, np.ndarray):
        raise CellMismatchError(owner, argument, f"an object of type {type(out).__name__}", "an array of uint8")
    if not out.flags.writeable:
        raise CellMismatchError(owner, argument, "read-only", "a writable array")
    if out.dtype != np.uint8 or out.ndim != 1 or len(out) < needed or not out.flags.c_contiguous:
        found = f"an array of {out.dtype} with shape {out.shape}"
        raise CellMismatchError(owner, argument, found, f"at least {needed} contiguous uint8")
