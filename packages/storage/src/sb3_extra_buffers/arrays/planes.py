"""Two arrays over one store of frames, read in one go."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from sb3_extra_buffers.arrays.array import CompressedArray
from sb3_extra_buffers.arrays.casting import as_rows
from sb3_extra_buffers.memory import Indices
from sb3_extra_buffers.stores import Plane


def read_both(first: CompressedArray, second: CompressedArray, cells: Indices) -> list[NDArray[Any]]:
    """Read the same cells of two arrays. If they are the planes of frames, what they have in common is decoded once.

    :param first: an array
    :param second: an array beside it
    :param cells: numbers that are known to be there, in one dimension
    """
    store = first.store
    if not isinstance(store, Plane) or not len(cells):
        return [first._read(cells), second._read(cells)]
    found = [array._batches.empty(cells.shape + array._item, array._stored) for array in (first, second)]
    store.frames.read_both(cells, *(as_rows(values, len(cells)) for values in found))
    return [values.astype(array.dtype, copy=False) for array, values in zip((first, second), found)]
