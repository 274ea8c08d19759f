"""``CellNumbers``: consecutive numbers in some shape, without the memory for them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sb3_extra_buffers.memory import Indices


class CellNumbers:
    """What ``numpy.arange(size).reshape(shape)`` is, made when it is asked for.

    For small cells that are stored well, eight bytes for the number of each are much. What buffers ask for is computed:
    one row, or an array of integers for each axis. Any other index is left to numpy, on an array that lives as long.

    :param shape: how the numbers are arranged
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.ndim = len(shape)
        self.size = math.prod(shape)
        self._row = self.size // shape[0]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        if type(key) is tuple and len(key) == 1:
            (key,) = key
        if isinstance(key, (int, np.integer)) and 0 <= key < self.shape[0] and not isinstance(key, bool):
            return self.row(int(key)).reshape(self.shape[1:])
        if type(key) is tuple and len(key) == self.ndim and all(map(_are_integers, key)):
            places = [part.astype(np.int64, copy=False) for part in key]
            if all(_are_within(place, length) for place, length in zip(places, self.shape)):
                return self._at(*places)
        return np.asarray(self)[key]

    def row(self, number: int) -> Indices:
        """The numbers of a row that is known to exist, in one dimension."""
        first = number * self._row
        return np.arange(first, first + self._row, dtype=np.int64)

    def _at(self, numbers: Indices, *places: Indices) -> Indices:
        for place, length in zip(places, self.shape[1:]):
            numbers = numbers * length + place
        return numbers

    def reshape(self, *shape: Any) -> Indices:
        """All numbers in another shape."""
        return np.asarray(self).reshape(*shape)

    def swapaxes(self, first: int, second: int) -> Indices:
        """All numbers with two axes swapped."""
        return np.asarray(self).swapaxes(first, second)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.arange(self.size, dtype=np.int64 if dtype is None else dtype).reshape(self.shape)


def _are_integers(part: Any) -> bool:
    return type(part) is np.ndarray and part.dtype.kind in "iu"


def _are_within(place: Indices, length: int) -> bool:
    # Without their sign, negative numbers are the largest: one look at all of them instead of two.
    return not place.size or bool(place.view(np.uint64).max() < length)
