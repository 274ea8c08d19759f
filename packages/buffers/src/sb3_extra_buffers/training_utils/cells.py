"""Observations that wait, compressed."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from sb3_extra_buffers.arrays import CompressedArray

_FIRST_CELLS = 128


class ObservationCells:
    """Observations under numbers, as many as needed. What is dropped makes room for others.

    :param example: observations as they will come, a row for each environment, or a dictionary of such
    """

    def __init__(self, example: Any) -> None:
        self._is_dict = isinstance(example, dict)
        self._arrays = {key: _cells(_FIRST_CELLS, rows) for key, rows in self._parts(example).items()}
        self._free = list(range(_FIRST_CELLS))

    @property
    def nbytes(self) -> int:
        """What the observations take, those included that were dropped and not replaced yet."""
        return sum(array.nbytes_stored for array in self._arrays.values())

    def put(self, observations: Any, which: NDArray[Any]) -> list[int]:
        """Store some rows; their numbers."""
        if not len(which):
            return []
        while len(which) > len(self._free):
            self._grow()
        numbers = [self._free.pop() for _ in which]
        for key, rows in self._parts(observations).items():
            self._arrays[key][numbers] = rows[which]
        return numbers

    def get(self, numbers: list[int]) -> Any:
        """The observations of these numbers, in this order."""
        found = {key: array[numbers] for key, array in self._arrays.items()}
        return found if self._is_dict else found[None]

    def drop(self, numbers: list[int]) -> None:
        """Forget them."""
        self._free += numbers

    def _parts(self, observations: Any) -> dict[Any, Any]:
        return observations if self._is_dict else {None: observations}

    def _grow(self) -> None:
        count = len(next(iter(self._arrays.values())))
        for key, old in self._arrays.items():
            self._arrays[key] = _cells(2 * count, old)
            for start in range(0, count, _FIRST_CELLS):  # in parts: uncompressed, all of it may be large
                part = slice(start, start + _FIRST_CELLS)
                self._arrays[key][part] = old[part]
        self._free += range(count, 2 * count)


def _cells(count: int, rows: Any) -> CompressedArray:
    return CompressedArray(count, rows.dtype, rows.shape[1:])
