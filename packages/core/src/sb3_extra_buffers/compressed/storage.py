"""The observations of one buffer: its arrays, the stores below them, and the heap that they share."""

from __future__ import annotations

import math
from enum import Enum
from typing import Any

import numpy as np
from gymnasium import spaces

from sb3_extra_buffers.arrays import CompressedArray
from sb3_extra_buffers.codecs import CellSpec
from sb3_extra_buffers.compressed.options import StorageOptions
from sb3_extra_buffers.compressed.spaces import NO_KEY, parts_of, shape_of
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.stores import (
    Demand,
    NextFace,
    ObservationFace,
    RewrittenStore,
    Store,
    TransitionStore,
    build_stores,
)
from sb3_extra_buffers.stores.choice import MIN_NBYTES


class Layout(Enum):
    """What a buffer stores per step."""

    #: One observation.
    SINGLE = "single"
    #: One observation, written twice: ``optimize_memory_usage`` of Stable-Baselines3.
    REWRITTEN = "rewritten"
    #: An observation and the next one, which are shared where they are the same.
    TRANSITIONS = "transitions"


class ObservationStorage:
    """Arrays for every key of an observation space.

    :param owner: the buffer's class, for messages
    :param space: the observation space
    :param rows: how many steps the buffer holds
    :param n_envs: how many environments are stored side by side
    :param options: how to store
    :param layout: what is stored per step
    """

    def __init__(
        self,
        owner: str,
        space: spaces.Space[Any],
        rows: int,
        n_envs: int,
        options: StorageOptions,
        layout: Layout,
    ) -> None:
        for name, value in (("buffer_size", rows), ("n_envs", n_envs)):
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
                raise ParameterError(owner, name, value, "it must be an integer of at least 1")
        parts = parts_of(space)
        keys = None if NO_KEY in parts else tuple(parts)
        options.check(owner, keys)
        self._cells = np.arange(rows * n_envs).reshape(rows, n_envs)
        stored = {}
        for key, part in parts.items():
            stored[key] = options.stored_dtype(owner, None if keys is None else key, np.dtype(part.dtype))
        demands = {
            key: Demand(
                f"{owner} {key}".strip(),
                CellSpec(stored[key], math.prod(shape_of(part))),
                (rows * n_envs,) * (2 if layout is Layout.TRANSITIONS else 1),
                options.codec(None if keys is None else key),
                writes=2 if layout is Layout.REWRITTEN else 1,
                row=n_envs,
            )
            for key, part in parts.items()
            if math.prod(shape_of(part))
        }
        built, self.heap = build_stores(list(demands.values()), options.place)
        self.observations: dict[str, CompressedArray] = {}
        self.next_observations: dict[str, CompressedArray] = {}
        stores = dict(zip(demands, built))
        for key, part in parts.items():
            own, following = _arrange(stores.get(key), layout, n_envs)
            shape, dtype = shape_of(part), np.dtype(part.dtype)
            self.observations[key] = CompressedArray.over(own, self._cells, shape, dtype, stored[key])
            if layout is Layout.TRANSITIONS:
                self.next_observations[key] = CompressedArray.over(following, self._cells, shape, dtype, stored[key])

    @property
    def evicted_cells(self) -> int:
        """How many cells the heap has dropped to stay within its capacity."""
        return 0 if self.heap is None else self.heap.evicted.cells

    @property
    def overhead(self) -> int:
        """Bytes of memory besides payloads: indices and staging areas."""
        own = sum(array.store.overhead for array in self._arrays() if array.store is not None)
        return own + self._cells.nbytes + self._index_nbytes()

    @property
    def nbytes_for_batches(self) -> int:
        """Bytes of memory that batches are decoded into."""
        return sum(array.nbytes_for_batches for array in self._arrays())

    def holds(self, row: int) -> bool:
        """Whether every observation of a row that was written can still be read."""
        stores = [array.store for array in self.observations.values() if array.store is not None]
        return all(bool(store.holds(self._cells[row]).all()) for store in stores)

    def clear(self) -> None:
        """Forget all observations."""
        for array in self._arrays():
            if array.store is not None:
                array.store.clear()

    def _arrays(self) -> list[CompressedArray]:
        return [*self.observations.values(), *self.next_observations.values()]

    def _index_nbytes(self) -> int:
        if self.heap is None:
            return 0
        # The size of a heap is that of the memory it holds, of which the room for payloads is a part if it is memory.
        return self.heap.nbytes - (self.heap.capacity if getattr(self.heap, "payloads_in_memory", True) else 0)


def _arrange(stores: list[Store] | None, layout: Layout, n_envs: int) -> tuple[Store | None, Store | None]:
    """The store of the observations and that of the next observations. An observation without elements has none."""
    if stores is None:
        return None, None
    if layout is Layout.SINGLE:
        return stores[0], None
    if layout is Layout.REWRITTEN:
        return RewrittenStore(stores[0]), None
    own, others = stores
    if own.row_nbytes < MIN_NBYTES:
        return own, others  # comparing costs more than it saves
    transitions = TransitionStore(own, others, n_envs)
    return ObservationFace(transitions), NextFace(transitions)
