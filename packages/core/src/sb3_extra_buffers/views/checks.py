"""Buffers seen as bytes, checked and without a copy."""

from __future__ import annotations

import numpy as np

from sb3_extra_buffers.errors import CellMismatchError
from sb3_extra_buffers.views.types import Buffer, Bytes


def view_bytes(
    owner: str, argument: str, buffer: Buffer, nbytes: int | None = None, *, writable: bool = False
) -> memoryview:
    """See a buffer as a flat sequence of bytes, or say precisely why that cannot be done.

    :param owner: who asks, for the error
    :param argument: the argument's name, for the error
    :param buffer: any object with the buffer protocol
    :param nbytes: the size that it must have
    :param writable: whether it will be written to
    """
    view = memoryview(buffer)
    if not view.c_contiguous:
        raise CellMismatchError(
            owner, argument, "not C-contiguous", "a C-contiguous buffer", "numpy.ascontiguousarray() makes one."
        )
    if nbytes is not None and view.nbytes != nbytes:
        raise CellMismatchError(owner, argument, f"{view.nbytes} bytes long", f"{nbytes} bytes")
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
    fits = rows.ndim == 2 and rows.shape[1] == nbytes and (count is None or len(rows) == count)
    if not fits or rows.dtype != np.uint8 or not rows.flags.c_contiguous:
        layout = "C-contiguous" if rows.flags.c_contiguous else "not C-contiguous"
        found = f"an array of {rows.dtype} with shape {rows.shape}, {layout}"
        expected = f"C-contiguous uint8 of shape ({'n' if count is None else count}, {nbytes})"
        raise CellMismatchError(owner, argument, found, expected)
    if writable and not rows.flags.writeable:
        raise CellMismatchError(owner, argument, "read-only", "a writable array")
