"""Cell numbers, and which part of an index picks whole cells."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sb3_extra_buffers.memory import Indices

_ALL = slice(None)


class CellNumbers:
    """``numpy.arange(size).reshape(shape)``, without the memory for it.

    Eight bytes per cell are much for cells that compress well. The indices that buffers use are computed: one step, or
    an array of integers for each axis. Any other index goes to numpy, on a temporary array.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape, self.ndim, self.size = shape, len(shape), math.prod(shape)
        self._row = self.size // shape[0]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        if type(key) is tuple and len(key) == 1:
            (key,) = key
        if isinstance(key, (int, np.integer)) and 0 <= key < self.shape[0] and not isinstance(key, bool):
            first = int(key) * self._row
            return np.arange(first, first + self._row, dtype=np.int64).reshape(self.shape[1:])
        if type(key) is tuple and len(key) == self.ndim and all(map(_are_integers, key)):
            places = [part.astype(np.int64, copy=False) for part in key]
            # As unsigned numbers, negative ones are the largest: one comparison instead of two.
            tops = [place.view(np.uint64).max(initial=0) for place in places]
            if all(top < length for top, length in zip(tops, self.shape)):
                numbers = places[0]
                for place, length in zip(places[1:], self.shape[1:]):
                    numbers = numbers * length + place
                return numbers
        return np.asarray(self)[key]

    def reshape(self, *shape: Any) -> Indices:
        return np.asarray(self).reshape(*shape)

    def swapaxes(self, first: int, second: int) -> Indices:
        return np.asarray(self).swapaxes(first, second)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.arange(self.size, dtype=np.int64 if dtype is None else dtype).reshape(self.shape)


def _are_integers(part: Any) -> bool:
    return type(part) is np.ndarray and part.dtype.kind in "iu"


def picks_whole_cells(key: Any, leading: int, total: int) -> tuple[Any, ...] | None:
    """Reduce an index to the axes that number the cells, or return ``None`` if it reaches into the cells.

    ``leading`` is the number of these axes, ``total`` includes the axes of the cells.
    """
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        return (key,)  # at every step
    if type(key) is tuple and len(key) == leading + 1 and type(key[-1]) is slice and key[-1] == _ALL:
        arrays = key[:-1]  # for every batch
        if all(map(_are_integers, arrays)):
            return arrays
    parts, used, end = _expanded(key if isinstance(key, tuple) else (key,), total), 0, 0
    while end < len(parts) and used < leading:
        used, end = used + _axes(parts[end]), end + 1
    # A mask may reach over axes of both kinds.
    return parts[:end] if used <= leading and all(map(_is_everything, parts[end:])) else None


def has_arrays(key: tuple[Any, ...]) -> bool:
    """Whether an index could pick a cell more than once."""
    return any(not (part is None or isinstance(part, (int, np.integer, slice))) for part in key)


def _is_everything(part: Any) -> bool:
    return part is Ellipsis or (isinstance(part, slice) and part == _ALL)


def _expanded(parts: tuple[Any, ...], total: int) -> tuple[Any, ...]:
    found = [position for position, part in enumerate(parts) if part is Ellipsis]
    if len(found) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    missing = total - sum(map(_axes, parts))
    if not found or missing <= 0:
        return parts  # an ellipsis for no axis still separates the parts around it
    return (*parts[: found[0]], *[_ALL] * missing, *parts[found[0] + 1 :])


def _axes(part: Any) -> int:
    """How many axes a part of an index stands for."""
    if part is None or part is Ellipsis or isinstance(part, (bool, np.bool_)):
        return 0
    if isinstance(part, (int, np.integer, slice)):
        return 1
    array = np.asarray(part)
    return array.ndim if array.dtype == np.bool_ else 1


def last_of_each(cells: Indices, values: NDArray[Any]) -> tuple[Indices, NDArray[Any]]:
    """Where a cell is assigned to several times, the last value stays."""
    numbers, places = np.unique(cells.reshape(-1)[::-1], return_index=True)
    if len(numbers) == cells.size:
        return cells.reshape(-1), values
    return numbers, values[cells.size - 1 - places]
