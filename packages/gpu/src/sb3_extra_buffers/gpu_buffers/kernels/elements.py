"""What the run-length kernels must know of a cell before they are launched."""

from __future__ import annotations

from sb3_extra_buffers.codecs.rle import end_dtype
from sb3_extra_buffers.errors import ParameterError

#: Sizes of elements that divide a tile: those of all dtypes that observations have.
ITEM_SIZES = (1, 2, 4, 8, 16)


def end_nbytes(owner: str, count: int, item: int) -> int:
    """How many bytes a run end has.

    :param owner: what asks, for the error
    :param count: elements of a cell
    :param item: bytes of an element
    """
    if item not in ITEM_SIZES:
        raise ParameterError(owner, "item", item, f"elements have {', '.join(map(str, ITEM_SIZES))} bytes")
    if count < 1:
        raise ParameterError(owner, "count", count, "a cell has one element or more")
    return int(end_dtype(count).itemsize)
