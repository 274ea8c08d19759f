"""The observations of one buffer: its arrays, their stores, and the heap that they share."""

from __future__ import annotations

import math
from dataclasses import replace
from enum import Enum
from typing import Any, cast

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sb3_extra_buffers import frames
from sb3_extra_buffers.arrays import CompressedArray
from sb3_extra_buffers.arrays.indexing import CellNumbers
from sb3_extra_buffers.checkpoints import State
from sb3_extra_buffers.codecs import bind
from sb3_extra_buffers.compressed.locking import BufferLock
from sb3_extra_buffers.compressed.options import FRAMES, StorageOptions
from sb3_extra_buffers.compressed.prefetch import BATCHES_AT_ONCE, GuardedStore, Worker
from sb3_extra_buffers.compressed.spaces import NO_KEY, parts_of, shape_of
from sb3_extra_buffers.errors import HeapStateError, ParameterError
from sb3_extra_buffers.frames import CachingKernels, Contiguity
from sb3_extra_buffers.heaps import FileHeap, Heap, StatefulHeap, StrictHeap
from sb3_extra_buffers.memory import BLOCKS, BatchMemory
from sb3_extra_buffers.stores import (
    DeferredStore,
    EvictingStore,
    FrameRequest,
    FrameStore,
    LocatedStore,
    ObservationStore,
    PairStore,
    Preference,
    SharedStore,
    StoreRequest,
    build_stores,
    preference,
    resolve,
)

_BYTE = np.dtype(np.uint8)


class PerStep(Enum):
    """What a buffer stores per step."""

    #: One observation.
    SINGLE = "single"
    #: One observation, written twice: ``optimize_memory_usage`` of Stable-Baselines3.
    REWRITTEN = "rewritten"
    #: An observation and the next one, stored once where they are the same.
    TRANSITIONS = "transitions"


class _Part:
    """One key of the observation space.

    :param key: the key
    :param store: holds its observations and next observations; ``None`` if they have no elements
    :param observations: the array of the observations
    :param next_observations: the array of the next observations
    :param batches: number of batches in use at the same time
    """

    def __init__(
        self,
        key: str,
        store: ObservationStore | None,
        observations: CompressedArray,
        next_observations: CompressedArray | None,
        batches: int,
    ) -> None:
        self.key = key
        #: The store as it was built. Its state says what was chosen.
        self.built = store
        #: The store that is used: the chosen one, once there is one.
        self.store = store
        self.observations = observations
        self.next_observations = next_observations
        #: Memory for batches: observations and next observations in one block.
        self.memory = BatchMemory(batches)
        # For every batch: the shape and the size of an observation, and its dtype in memory and in the store.
        self._item = observations.shape[2:]
        self._dtype, self._stored = observations.dtype, observations.stored_dtype
        self._row_nbytes = math.prod(self._item) * self._stored.itemsize
        self._is_bytes = observations.is_plain and observations.dtype == np.uint8

    def write(self, cells: NDArray[np.int64], obs: NDArray[Any], next_obs: NDArray[Any]) -> None:
        """Store observations and next observations of the right shape and dtype, C-contiguous."""
        store, count = self.store, len(cells)
        if store is None:
            return
        if self._is_bytes:
            store.write(cells, obs.reshape(count, -1), next_obs.reshape(count, -1))
        else:
            store.write(cells, self.observations.stored_rows(obs), self.observations.stored_rows(next_obs))
        if type(store) is DeferredStore:
            self.store = resolve(store)

    def read_both(self, cells: NDArray[np.int64]) -> list[NDArray[Any]]:
        """Observations and next observations of these cells. Frames that both have are decoded once."""
        shape = len(cells), *self._item
        if self.store is None or not len(cells):
            return [np.zeros(shape, self._dtype) for _ in range(2)]
        first, second = self.memory.empty((2, len(cells), self._row_nbytes), _BYTE)
        self.store.read(cells, first, second)
        found = [rows.view(self._stored).reshape(shape) for rows in (first, second)]
        return found if self._stored is self._dtype else [part.astype(self._dtype, copy=False) for part in found]


class ObservationStorage:
    """Arrays and stores for every key of an observation space.

    :param owner: the buffer's class, for messages
    :param space: the observation space
    :param steps: number of steps the buffer holds
    :param n_envs: number of environments
    :param options: how to store
    :param per_step: what is stored per step
    :param heap: a heap that was made for the same arguments; left out, one is made
    """

    _array_type: type[CompressedArray] = CompressedArray
    #: Makes codecs ready for cells.
    _bind = staticmethod(bind)
    #: The thread that reads ahead; ``None`` without prefetch.
    worker: Worker | None = None

    def __init__(
        self,
        owner: str,
        space: spaces.Space[Any],
        steps: int,
        n_envs: int,
        options: StorageOptions,
        per_step: PerStep,
        heap: Heap | None = None,
    ) -> None:
        for name, value in (("buffer_size", steps), ("n_envs", n_envs)):
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
                raise ParameterError(owner, name, value, "it must be an integer of at least 1")
        parts = parts_of(space)
        keys = None if NO_KEY in parts else tuple(parts)
        options.check(owner, keys)
        self.lock = BufferLock()
        #: Whether observations are returned as float32.
        self.as_float = options.as_float
        self._n_envs = int(n_envs)
        self._cells = CellNumbers((steps, n_envs))
        stored = {
            key: options.stored_dtype(owner, None if keys is None else key, np.dtype(part.dtype))
            for key, part in parts.items()
        }
        requests: dict[str, StoreRequest] = {}
        for key, part in parts.items():
            shape, codec = shape_of(part), options.codec(None if keys is None else key)
            if math.prod(shape):
                plain = StoreRequest(
                    f"{owner} {key}".strip(),
                    shape,
                    stored[key],
                    steps * n_envs,
                    n_envs,
                    codec,
                    has_next=per_step is PerStep.TRANSITIONS,
                    is_rewritten=per_step is PerStep.REWRITTEN,
                )
                requests[key] = self._frames(owner, plain, options) or plain
        #: Keys that are stored as frames, unless the data say otherwise.
        self.frame_keys = {key for key, request in requests.items() if isinstance(request, FrameRequest)}
        if options.layout == FRAMES and not self.frame_keys:
            allowed = "frames are images, and the space has no axis besides one"
            raise ParameterError(owner, "layout", options.layout, allowed, "Leave layout out.")
        place = replace(options.place, bind=self._bind)
        built, self.heap = build_stores(list(requests.values()), place, heap)
        #: Whether the heap has a limit.
        self._is_bounded = self.heap is not None and not place.plugin.grows
        #: Whether a full heap refuses a step instead of evicting others.
        self.is_strict = isinstance(self.heap, StrictHeap) and self.heap.refuses_when_full
        #: Makes observations C-contiguous.
        self.contiguous = Contiguity(frames.create() if self.frame_keys else None)
        batches = BLOCKS
        if options.prefetch:
            self.worker, batches = Worker(), BATCHES_AT_ONCE
        self._parts: list[_Part] = []
        stores = dict(zip(requests, built))
        for key, part in parts.items():
            store = stores.get(key)
            if store is not None and self.worker is not None:
                store = cast("ObservationStore", GuardedStore(store, self.worker))
            form = store, self._cells, shape_of(part), np.dtype(part.dtype), stored[key], batches
            array, following = self._array_type.over(*form), None
            if per_step is PerStep.TRANSITIONS:
                following = self._array_type.over(*form)
                following._is_next = True
            self._parts.append(_Part(key, store, array, following, batches))
        self.observations = {part.key: part.observations for part in self._parts}
        self.next_observations = {
            part.key: part.next_observations for part in self._parts if part.next_observations is not None
        }
        #: The only part of a space without keys; ``None`` if there are keys.
        self._only = self._parts[0] if keys is None else None

    def _frames(self, owner: str, request: StoreRequest, options: StorageOptions) -> FrameRequest | None:
        """The same request for frames, if observations are to be stored as frames."""
        steps = request.cells // request.streams
        if not options.wants_frames(request.shape, request.dtype, request.codec, steps):
            return None
        may_be_cells = request.codec is None and options.may_be_cells and not request.is_rewritten
        return FrameRequest(
            **vars(request), preference=self._preference(owner, options.prefer), may_be_cells=may_be_cells
        )

    def _preference(self, owner: str, prefer: str) -> Preference:
        """How frames are stored."""
        return preference(owner, prefer)

    def takes(self, obs: Any, next_obs: Any) -> bool:
        """Whether observations can be stored without conversion; for a space without keys only."""
        return self._only is not None and self._only.observations.takes(obs) and self._only.observations.takes(next_obs)

    def refuse_too_large(self, next_obs: Any) -> None:
        """Refuse next observations that could never be stored, before anything changes; for a space without keys only.

        :param next_obs: as for :meth:`write_step`
        """
        part = self._only
        if self._is_bounded and part is not None and part.store is not None:
            store = part.store.active
            if isinstance(store, (PairStore, SharedStore)):
                store.refuse_too_large(part.observations.stored_rows(next_obs))

    def write_step(self, step: int, obs: Any, next_obs: Any) -> None:
        """Store a step of all environments: arrays of the right shape and dtype, C-contiguous, or dictionaries of them.

        :param step: its position
        :param obs: observations
        :param next_obs: next observations
        """
        first = step * self._n_envs
        cells = np.arange(first, first + self._n_envs)
        if self._only is not None:
            self._only.write(cells, obs, next_obs)
            return
        for part in self._parts:
            part.write(cells, obs[part.key], next_obs[part.key])

    def known_rows(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        """The same steps, counted from the first; an ``IndexError`` if there is no such step."""
        found: NDArray[np.int64] = CellNumbers((len(self._cells),))[np.asarray(rows)]
        return found

    def read_both(self, cells: NDArray[np.int64]) -> dict[str, list[NDArray[Any]]]:
        """Observations and next observations of the same cells, by key.

        :param cells: numbers of cells
        """
        return {part.key: part.read_both(cells) for part in self._parts}

    @property
    def evicted_cells(self) -> int:
        """Number of payloads that the heap has evicted, or could not take."""
        if not self._is_bounded:
            return 0
        assert self.heap is not None
        return self.heap.evicted.cells + sum(store.dropped for store in self._evicting())

    @property
    def overhead(self) -> int:
        """Bytes of memory besides payloads: indices and staging areas."""
        return sum(store.overhead for store in self.stores()) + self._index_nbytes()

    @property
    def nbytes_for_batches(self) -> int:
        """Bytes of memory that batches are decoded into, and that decoding takes."""
        kernels = [store.active.kernels for store in self.stores() if isinstance(store.active, FrameStore)]
        cached = sum(own.nbytes_for_batches for own in kernels if isinstance(own, CachingKernels))
        arrays = (array for part in self._parts for array in (part.observations, part.next_observations) if array)
        own = sum(part.memory.nbytes for part in self._parts)
        return sum(array.nbytes_for_batches for array in arrays) + own + cached

    def has_evicted(self, step: int) -> bool:
        """Whether the heap has evicted a step at once that was just written."""
        return self._is_bounded and self.heap is not None and self.heap.evicted.cells > 0 and not self.holds(step)

    def holds(self, step: int) -> bool:
        """Whether every observation of a step that was written can still be read."""
        return all(bool(store.holds(self._cells[step]).all()) for store in self.stores())

    def lost_steps(self) -> NDArray[np.bool_]:
        """For each step, whether frames of it were evicted. They need not be those of the oldest steps."""
        lost = np.zeros(len(self._cells), np.bool_)
        for store in self._evicting():
            mask = store.lost()
            if mask is not None:
                lost |= mask.reshape(-1, *self._cells.shape).any(axis=(0, 2))
        return lost

    def positions_of(self, step: int) -> list[Any] | None:
        """Where in the heap the observations of a step are. Equal positions before and after a step that was refused
        mean equal content: a heap that refuses overwrites nothing in place.

        :param step: a step that was written
        :return: ``None`` if heap or stores do not say: frames do not
        """
        found: list[Any] = []
        cells = self._cells[step]
        for part in self._parts:
            store = None if part.store is None else part.store.active
            if store is None:
                continue
            if not isinstance(store, LocatedStore):
                return None
            for is_next in (False, True)[: 1 + (part.next_observations is not None)]:
                here = store.origins(cells, is_next)
                if here.in_memory:
                    return None  # not in the heap yet
                assert self.heap is not None
                found.append((here.cells.tolist(), self.heap.locate(here.cells[here.cells >= 0])[0].tolist()))
        return found

    def stores(self) -> list[ObservationStore]:
        """The stores of all keys whose observations have elements."""
        return [part.store for part in self._parts if part.store is not None]

    def clear(self) -> None:
        """Forget all observations."""
        for store in self.stores():
            store.clear()

    def state(self) -> State:
        """What another storage with the same arguments needs in order to become this one."""
        if self.worker is not None:
            self.worker.wait()
        found = State({"has_heap": self.heap is not None})
        if self.heap is not None:
            if not isinstance(self.heap, StatefulHeap):
                kind = type(self.heap).__name__
                hint = "Use another heap, or pickle the buffer."
                raise HeapStateError(kind, "save", "this heap has no state()", hint)
            found.put("heap", self.heap.state())
        return self.put_stores(found)

    def put_stores(self, found: State) -> State:
        """Add the states of all stores, without that of the heap."""
        for number, part in enumerate(self._parts):
            if part.built is None:
                continue
            own, following = _split(part.built.state())
            found.put(str(number), own)
            if part.next_observations is not None:
                found.put(str(len(self._parts) + number), following)
        return found

    def restore(self, state: State) -> None:
        """Become what another storage was."""
        state.same(has_heap=self.heap is not None)
        if self.heap is not None:
            assert isinstance(self.heap, StatefulHeap)
            self.heap.restore(state.part("heap"))
        self.restore_stores(state)

    def restore_stores(self, state: State) -> None:
        """Become what another storage was, whose heap this one has."""
        for number, part in enumerate(self._parts):
            if part.built is None:
                continue
            own = state.part(str(number))
            if isinstance(part.built.active, PairStore):
                own = _joined(own, state.part(str(len(self._parts) + number)))
            part.built.restore(own)
            part.store = resolve(part.built)

    def _evicting(self) -> list[EvictingStore]:
        actives: list[Any] = [store.active for store in self.stores()]
        return [store for store in actives if isinstance(store, EvictingStore)]

    def _index_nbytes(self) -> int:
        heap = self.heap
        if heap is None:
            return 0
        # The size of a heap is that of the memory it holds, of which the room for payloads is a part if it is memory.
        in_memory = heap.payloads_in_memory if isinstance(heap, FileHeap) else True
        return heap.nbytes - (heap.capacity if in_memory else 0)


#: The name under which a store that keeps next observations apart has their state.
_NEXT = "next"


def _split(state: State) -> tuple[State, State]:
    """The state of a store without that of next observations that it keeps apart, and this one."""
    if _NEXT not in state.facts:
        return state, State()
    following = state.part(_NEXT)
    facts = {name: fact for name, fact in state.facts.items() if name != _NEXT}
    arrays = {name: array for name, array in state.arrays.items() if not name.startswith(f"{_NEXT}/")}
    return State(facts, arrays), following


def _joined(own: State, following: State) -> State:
    """The inverse of :func:`_split`."""
    arrays = {f"{_NEXT}/{name}": array for name, array in following.arrays.items()}
    stored = {f"{_NEXT}/{name}": found for name, found in following.stored.items()}
    return State(
        {**own.facts, _NEXT: following.facts}, {**own.arrays, **arrays}, [], own.pieces, {**own.stored, **stored}
    )
