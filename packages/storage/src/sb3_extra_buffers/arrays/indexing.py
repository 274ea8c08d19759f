"""Which part of an index picks cells, and which reaches inside them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.memory import Indices

_ALL = slice(None)


def picks_whole_cells(key: Any, leading: int, total: int) -> tuple[Any, ...] | None:
    """Reduce an index to the leading axes, or return ``None`` if it reaches into the cells.

    :param key: an index as numpy takes it
    :param leading: how many axes number the cells
    :param total: how many axes there are with those of the cells
    """
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        return (key,)  # at every step of the environments
    if type(key) is tuple and len(key) == leading + 1 and type(key[-1]) is slice and key[-1] == _ALL:
        arrays = key[:-1]  # of every batch
        if all(type(part) is np.ndarray and part.dtype.kind in "iu" for part in arrays):
            return arrays
    parts = _expanded(key if isinstance(key, tuple) else (key,), total)
    used = 0
    kept: list[Any] = []
    for position, part in enumerate(parts):
        if used > leading:
            return None  # a mask over axes of both kinds
        if used == leading:
            return tuple(kept) if all(map(_is_everything, parts[position:])) else None
        used += _axes(part)
        kept.append(part)
    return tuple(kept) if used <= leading else None


def has_arrays(key: tuple[Any, ...]) -> bool:
    """Whether an index could pick a cell more than once."""
    return any(not (part is None or isinstance(part, (int, np.integer, slice))) for part in key)


def _is_everything(part: Any) -> bool:
    return part is Ellipsis or (isinstance(part, slice) and part == _ALL)


def _expanded(parts: tuple[Any, ...], total: int) -> tuple[Any, ...]:
    for position, part in enumerate(parts):
        if part is Ellipsis:
            if any(other is Ellipsis for other in parts[position + 1 :]):
                raise IndexError("an index can only have a single ellipsis ('...')")
            missing = total - sum(map(_axes, parts))
            if missing <= 0:
                break  # it stands for nothing, yet separates what is before it from what is behind it
            return (*parts[:position], *[_ALL] * missing, *parts[position + 1 :])
    return parts


def _axes(part: Any) -> int:
    """How many axes a part of an index stands for."""
    if part is None or part is Ellipsis:
        return 0
    if isinstance(part, (bool, np.bool_)):
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
