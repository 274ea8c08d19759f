"""The observations of one buffer: its arrays, the stores below them, and the heap that they share."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sb3_extra_buffers.arrays import CompressedArray
from sb3_extra_buffers.arrays.casting import as_rows
from sb3_extra_buffers.arrays.numbers import CellNumbers
from sb3_extra_buffers.arrays.planes import read_both
from sb3_extra_buffers.checkpoints import State
from sb3_extra_buffers.codecs import CellSpec, bind
from sb3_extra_buffers.compressed.arranging import PerStep, arranged, settled
from sb3_extra_buffers.compressed.options import FRAMES, StorageOptions
from sb3_extra_buffers.compressed.prefetch import BATCHES_AT_ONCE, Worker
from sb3_extra_buffers.compressed.spaces import NO_KEY, parts_of, shape_of
from sb3_extra_buffers.compressed.turns import Turns
from sb3_extra_buffers.errors import HeapStateError, ParameterError
from sb3_extra_buffers.frames import Contiguity
from sb3_extra_buffers.memory import BLOCKS, BatchMemory
from sb3_extra_buffers.stores import (
    Demand,
    FrameDemand,
    Frames,
    Plane,
    Preference,
    Store,
    UndecidedFrames,
    build_stores,
    preference,
)


class ObservationStorage:
    """Arrays for every key of an observation space.

    :param owner: the buffer's class, for messages
    :param space: the observation space
    :param rows: how many steps the buffer holds
    :param n_envs: how many environments are stored side by side
    :param options: how to store
    :param per_step: what is stored per step
    """

    _array_type: type[CompressedArray] = CompressedArray
    #: Makes codecs ready for cells.
    _bind = staticmethod(bind)
    #: Who reads ahead; ``None`` if nobody does.
    worker: Worker | None = None

    def __init__(
        self,
        owner: str,
        space: spaces.Space[Any],
        rows: int,
        n_envs: int,
        options: StorageOptions,
        per_step: PerStep,
    ) -> None:
        for name, value in (("buffer_size", rows), ("n_envs", n_envs)):
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
                raise ParameterError(owner, name, value, "it must be an integer of at least 1")
        parts = parts_of(space)
        keys = None if NO_KEY in parts else tuple(parts)
        options.check(owner, keys)
        #: Who uses the buffer now.
        self.turns = Turns()
        self._cells = CellNumbers((rows, n_envs))
        #: Whether observations are handed out as float32.
        self.as_float = options.as_float
        stored = {}
        for key, part in parts.items():
            stored[key] = options.stored_dtype(owner, None if keys is None else key, np.dtype(part.dtype))
        demands: dict[str, Demand | FrameDemand] = {}
        for key, part in parts.items():
            shape, codec = shape_of(part), options.codec(None if keys is None else key)
            label, planes = f"{owner} {key}".strip(), 2 if per_step is PerStep.TRANSITIONS else 1
            if options.wants_frames(shape, stored[key], codec, rows):
                wish = self._preference(owner, options.prefer)
                may_be_cells = codec is None and options.may_be_cells and per_step is not PerStep.REWRITTEN
                demands[key] = FrameDemand(
                    label, shape, stored[key], rows * n_envs, planes, n_envs, wish, codec, may_be_cells
                )
            elif math.prod(shape):
                cell, writes = CellSpec(stored[key], math.prod(shape)), 2 if per_step is PerStep.REWRITTEN else 1
                demands[key] = Demand(label, cell, (rows * n_envs,) * planes, codec, writes, n_envs)
        if options.layout == FRAMES and not any(isinstance(demand, FrameDemand) for demand in demands.values()):
            allowed = "frames are images, and the space has no axis besides one"
            raise ParameterError(owner, "layout", options.layout, allowed, "Leave layout out.")
        built, self.heap = build_stores(list(demands.values()), replace(options.place, bind=self._bind))
        self.observations: dict[str, CompressedArray] = {}
        self.next_observations: dict[str, CompressedArray] = {}
        stores = dict(zip(demands, built))
        batches = BLOCKS
        if options.prefetch:
            self.worker, batches = Worker(), BATCHES_AT_ONCE
        for key, part in parts.items():
            pair = arranged(stores.get(key), per_step, n_envs, self._is_strict)
            own, following = (settled(store, self.worker) for store in pair)
            shape, dtype = shape_of(part), np.dtype(part.dtype)
            form = self._cells, shape, dtype, stored[key], batches
            self.observations[key] = self._array_type.over(own, *form)
            if per_step is PerStep.TRANSITIONS:
                self.next_observations[key] = self._array_type.over(following, *form)
        arrays = [array for array in self.observations.values() if isinstance(array.store, Plane)]
        self._frames: list[Frames] = [array.store.frames for array in arrays if isinstance(array.store, Plane)]
        #: Brings observations into the order that stores take.
        self.contiguous = Contiguity(self._frames[0].kernels if self._frames else None)
        #: Frames of observations and next observations that are stored as they come, in a space without keys.
        self._plain_frames: Frames | None = None
        #: The array of these observations.
        self.plain: CompressedArray | None = None
        #: Memory for what is read of these.
        self._pairs = BatchMemory(batches)
        if keys is None and arrays and arrays[0].is_plain and self.next_observations:
            self.plain, self._plain_frames = arrays[0], self._frames[0]

    def _preference(self, owner: str, prefer: str) -> Preference:
        """How frames are stored."""
        return preference(owner, prefer)

    def known_rows(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        """The same rows, counted from the first; an ``IndexError`` if there is no such row."""
        found: NDArray[np.int64] = CellNumbers((len(self._cells),))[np.asarray(rows)]
        return found

    def read_both(self, cells: NDArray[np.int64]) -> dict[str, list[NDArray[Any]]]:
        """Observations and next observations of the same transitions, by key.

        :param cells: numbers of transitions
        """
        if self._plain_frames is not None and len(cells):
            return {NO_KEY: self._read_plain(self._plain_frames, cells)}
        following = self.next_observations
        return {key: read_both(array, following[key], cells) for key, array in self.observations.items()}

    def _read_plain(self, frames: Frames, cells: NDArray[np.int64]) -> list[NDArray[Any]]:
        """Both in one block of memory: what every batch of images takes, so it goes the shortest way."""
        array = self.observations[NO_KEY]
        pair = self._pairs.empty((2, len(cells), *array.shape[2:]), array.dtype)
        first, second = pair.reshape(2, len(cells), -1).view(np.uint8)
        frames.read_both(cells, first, second)
        return [pair[0], pair[1]]

    def refuse_too_large(self, next_obs: NDArray[Any]) -> None:
        """Refuse what a heap of limited capacity could never take, while nothing has changed; without keys only.

        :param next_obs: as for ``write_step``
        """
        following = self.next_observations[NO_KEY]
        check = getattr(following.store, "refuse_too_large", None)
        if check is not None and following.is_plain:
            check(as_rows(next_obs, len(next_obs)))

    def write_step(self, row: int, obs: NDArray[Any], next_obs: NDArray[Any]) -> None:
        """Store a step of all environments, for a space without keys.

        :param row: where
        :param obs: an observation for each environment, of the shape and dtype of the array, C-contiguous
        :param next_obs: what they lead to, likewise
        """
        frames = self._plain_frames
        if frames is not None:
            count = len(obs)
            frames.write_both(self._cells.row(row), as_rows(obs, count), as_rows(next_obs, count))
            self._note_decided()
        else:
            self.observations[NO_KEY][row] = obs
            self.next_observations[NO_KEY][row] = next_obs

    @property
    def _is_strict(self) -> bool:
        """Whether a full heap refuses a step."""
        return bool(getattr(self.heap, "refuses_when_full", False))

    @property
    def evicted_cells(self) -> int:
        """How many cells the heap has dropped to stay within its capacity, or could not take."""
        if self.heap is None:
            return 0
        count = self.heap.evicted.cells
        for frames in self._frames:
            count += frames.dropped
        return count

    @property
    def overhead(self) -> int:
        """Bytes of memory besides payloads: indices and staging areas."""
        return sum(store.overhead for store in self.stores()) + self._index_nbytes()

    @property
    def nbytes_for_batches(self) -> int:
        """Bytes of memory that batches are decoded into, and of what that takes."""
        kernels = sum(getattr(frames.kernels, "nbytes_for_batches", 0) for frames in self._frames)
        return sum(array.nbytes_for_batches for array in self._arrays()) + self._pairs.nbytes + int(kernels)

    def has_evicted(self, row: int) -> bool:
        """Whether a heap that keeps to a budget has dropped a row at once that was just written."""
        return self.heap is not None and self.heap.evicted.cells > 0 and not self.holds(row)

    def holds(self, row: int) -> bool:
        """Whether every observation of a row that was written can still be read."""
        return all(bool(store.holds(self._cells[row]).all()) for store in self.stores())

    def lost_rows(self) -> NDArray[np.bool_]:
        """For each row, whether frames of it were dropped. Unlike cells, they need not be those of the oldest rows."""
        lost = np.zeros(len(self._cells), np.bool_)
        for frames in self._frames:
            mask = frames.lost()
            if mask is not None:
                lost |= mask.reshape(-1, *self._cells.shape).any(axis=(0, 2))
        return lost

    def stores(self) -> list[Store]:
        """What the arrays stand on."""
        return [array.store for array in self._arrays() if array.store is not None]

    def cells_of(self, row: int) -> NDArray[np.int64]:
        """The numbers of the transitions of a row."""
        found: NDArray[np.int64] = self._cells[row]
        return found

    def clear(self) -> None:
        """Forget all observations."""
        for store in self.stores():
            store.clear()

    def state(self) -> State:
        """What another storage of the same arguments needs in order to become this one."""
        if self.worker is not None:
            self.worker.settle()
        found = State({"has_heap": self.heap is not None})
        if self.heap is not None:
            if not hasattr(self.heap, "state"):
                kind = type(self.heap).__name__
                raise HeapStateError(
                    kind, "save", "this heap has no state()", "Use another heap, or pickle the buffer."
                )
            found.put("heap", self.heap.state())
        for number, array in enumerate(self._arrays()):
            if array.store is not None:
                found.put(str(number), array.store.state())
        return found

    def restore(self, state: State) -> None:
        """Become what another storage was."""
        state.same(has_heap=self.heap is not None)
        if self.heap is not None:
            self.heap.restore(state.part("heap"))  # type: ignore[attr-defined]
        for number, array in enumerate(self._arrays()):
            if array.store is not None:
                array.store.restore(state.part(str(number)))
        self._note_decided()

    def _note_decided(self) -> None:
        """Once it is known how frames are stacked, they are reached directly."""
        frames = self._plain_frames
        if isinstance(frames, UndecidedFrames) and frames.decided is not None:
            self._plain_frames = self._frames[0] = frames.decided

    def _arrays(self) -> list[CompressedArray]:
        return [*self.observations.values(), *self.next_observations.values()]

    def _index_nbytes(self) -> int:
        if self.heap is None:
            return 0
        # The size of a heap is that of the memory it holds, of which the room for payloads is a part if it is memory.
        return self.heap.nbytes - (self.heap.capacity if getattr(self.heap, "payloads_in_memory", True) else 0)
