"""The observations of one buffer: its arrays, their stores, and the heap that they share."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from enum import Enum
from typing import Any, cast

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.preprocessing import get_obs_shape

from sb3_extra_buffers import frames
from sb3_extra_buffers.arrays import CompressedArray
from sb3_extra_buffers.arrays.indexing import CellNumbers
from sb3_extra_buffers.checkpoints import State
from sb3_extra_buffers.codecs import bind
from sb3_extra_buffers.compressed.locking import BufferLock
from sb3_extra_buffers.compressed.options import FRAMES, StorageOptions
from sb3_extra_buffers.compressed.prefetch import BATCHES_AT_ONCE, GuardedStore, Worker
from sb3_extra_buffers.errors import HeapStateError, ParameterError
from sb3_extra_buffers.frames import CachingKernels, contiguous_by
from sb3_extra_buffers.frames.batch_memory import BLOCKS, BatchMemory
from sb3_extra_buffers.heaps import FileHeap, Heap, StatefulHeap, StrictHeap
from sb3_extra_buffers.stores import (
    AUTO,
    BALANCED,
    SPEED,
    BoundedStore,
    DeferredStore,
    EvictingStore,
    FrameRequest,
    FrameStore,
    LocatedStore,
    ObservationStore,
    OverlappingStore,
    PairStore,
    Place,
    Preference,
    StoreRequest,
    build_stores,
    preference,
    resolve,
)

_BYTE = np.dtype(np.uint8)
#: The key of a space that has none.
NO_KEY = ""


def parts_of(space: spaces.Space[Any]) -> dict[str, spaces.Space[Any]]:
    """The parts of a space by key; a space without keys is its own only part."""
    return dict(space.spaces) if isinstance(space, spaces.Dict) else {NO_KEY: space}


def shape_of(part: spaces.Space[Any]) -> tuple[int, ...]:
    """The shape of one observation in a buffer."""
    shape = get_obs_shape(part)
    assert isinstance(shape, tuple)
    return tuple(int(axis) for axis in shape)


class PerStep(Enum):
    """What a buffer stores per step."""

    #: One observation.
    SINGLE = "single"
    #: One observation, written twice: ``optimize_memory_usage`` of Stable-Baselines3.
    REWRITTEN = "rewritten"
    #: An observation and the next one, stored once where they are the same.
    TRANSITIONS = "transitions"


@dataclass(eq=False)
class _Part:
    """One key of the observation space."""

    key: str
    #: The store as it was built; its state says what was chosen. ``None`` if observations have no elements.
    built: ObservationStore | None
    #: The store that is used: the chosen one, once there is one; with prefetch, guarded.
    store: ObservationStore | None
    observations: CompressedArray
    next_observations: CompressedArray | None
    #: Memory for batches: observations and next observations in one block.
    memory: BatchMemory

    def __post_init__(self) -> None:
        # For every batch: the shape and the size of an observation, and its dtype in memory and in the store.
        array = self.observations
        self._item = array.shape[2:]
        self._dtype, self._stored = array.dtype, array.stored_dtype
        self._row_nbytes = math.prod(self._item) * self._stored.itemsize
        self._is_plain = array.is_plain
        self._is_bytes = array.is_plain and array.dtype == np.uint8

    def write(self, cells: NDArray[np.int64], obs: NDArray[Any], next_obs: NDArray[Any] | None) -> None:
        """Store observations and next observations, if there are any, of the right shape and dtype, C-contiguous."""
        store, count = self.store, len(cells)
        if store is None:
            return
        if self._is_bytes:
            store.write(cells, obs.reshape(count, -1), None if next_obs is None else next_obs.reshape(count, -1))
        elif self._is_plain:
            rows = obs.reshape(count, -1).view(_BYTE)
            store.write(cells, rows, None if next_obs is None else next_obs.reshape(count, -1).view(_BYTE))
        else:
            convert = self.observations.stored_rows
            store.write(cells, convert(obs), None if next_obs is None else convert(next_obs))
        if type(store) is DeferredStore:
            self.store = resolve(store)

    def read_both(self, cells: NDArray[np.int64], overlap: bool) -> list[NDArray[Any]]:
        """Observations and next observations of these cells. Frames that both have are decoded once.

        :param overlap: whether the two may be views of one array, if that is possible
        """
        store, count = self.store, len(cells)
        shape = count, *self._item
        if store is None or not count:
            return [np.zeros(shape, self._dtype) for _ in range(2)]
        found = self._read_overlapping(store, cells) if overlap else None
        if found is None:
            first, second = self.memory.empty((2, count, self._row_nbytes), _BYTE)
            store.read(cells, first, second)
            found = first.view(self._stored), second.view(self._stored)
        parts = [rows.reshape(shape) for rows in found]
        return parts if self._stored is self._dtype else [part.astype(self._dtype, copy=False) for part in parts]

    def _read_overlapping(
        self, store: ObservationStore, cells: NDArray[np.int64]
    ) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """Observations and next observations as views of the same rows; ``None`` if not all of them are shifts."""
        nbytes = getattr(store, "overlapping_nbytes", 0)  # at every batch: isinstance() looks at all members
        if not nbytes:
            return None
        rows = self.memory.empty((len(cells), nbytes), _BYTE)
        if not cast("OverlappingStore", store).read_overlapping(cells, rows):
            return None
        both, size = rows.view(self._stored), self._row_nbytes // self._stored.itemsize
        return both[:, :size], both[:, -size:]


class ObservationStorage:
    """Arrays and stores for every key of an observation space.

    :param owner: the buffer's class, for messages
    :param heap: the heap of a buffer that is unpickled; by default, a new one is made
    """

    _array_type: type[CompressedArray] = CompressedArray
    #: Makes codecs ready for cells.
    _bind = staticmethod(bind)
    #: The thread that reads ahead; ``None`` without prefetch.
    worker: Worker | None = None
    #: Whether an interrupt has stopped :meth:`clear`, which must be finished before anything is written or saved.
    is_clearing = False

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
        self.as_float = options.output_dtype == "float" or options.normalize_images
        self._n_envs = int(n_envs)
        self._cells = CellNumbers((steps, n_envs))
        has_next, is_rewritten = per_step is PerStep.TRANSITIONS, per_step is PerStep.REWRITTEN
        stored: dict[str, np.dtype[Any]] = {}
        requests: dict[str, StoreRequest] = {}
        for key, part in parts.items():
            shape, codec = shape_of(part), options.codec(key or None)
            stored[key] = dtype = options.stored_dtype(owner, key or None, np.dtype(part.dtype))
            if not math.prod(shape):
                continue
            label = f"{owner} {key}".strip()
            prefer = options.preferred
            plain = StoreRequest(label, shape, dtype, steps * n_envs, n_envs, codec, has_next, is_rewritten, prefer)
            requests[key] = plain
            if options.wants_frames(shape, dtype, codec, steps):
                # Unless the user or Stable-Baselines3 asks for something else.
                is_automatic = codec is None and not is_rewritten and options.layout == AUTO
                # Of frames, patches without a codec have the smallest product of memory and time.
                is_balanced = options.layout == AUTO and prefer == BALANCED
                how = self._preference(owner, SPEED if is_balanced else prefer)
                requests[key] = FrameRequest(**vars(plain), preference=how, is_automatic=is_automatic)
        #: Keys that are stored as frames, unless the data say otherwise.
        self.frame_keys = {key for key, request in requests.items() if isinstance(request, FrameRequest)}
        if options.layout == FRAMES and not self.frame_keys:
            allowed = "frames are images, and the space has no axis besides one"
            raise ParameterError(owner, "layout", options.layout, allowed, "Leave layout out.")
        place = Place(options.heap, dict(options.heap_kwargs or {}), options.threads, self._bind)
        built, self.heap = build_stores(list(requests.values()), place, heap)
        #: Whether the heap has a limit.
        self.is_bounded = self.heap is not None and not place.plugin.grows
        #: Whether a full heap refuses a step instead of evicting others.
        self.is_strict = isinstance(self.heap, StrictHeap) and self.heap.refuses_when_full
        #: Makes observations C-contiguous.
        self.contiguous = contiguous_by(frames.create() if self.frame_keys else None)
        batches = BLOCKS
        if options.prefetch:
            self.worker, batches = Worker(), BATCHES_AT_ONCE
        self._parts: list[_Part] = []
        stores = dict(zip(requests, built))
        for key, part in parts.items():
            as_built = store = stores.get(key)
            if store is not None and self.worker is not None:
                store = cast("ObservationStore", GuardedStore(store, self.worker))
            form = store, self._cells, shape_of(part), np.dtype(part.dtype), stored[key], batches
            following = self._array_type.over(*form) if has_next else None
            if following is not None:
                following._is_next = True
            array, memory = self._array_type.over(*form), BatchMemory(batches)
            self._parts.append(_Part(key, as_built, store, array, following, memory))
        self.observations = {part.key: part.observations for part in self._parts}
        following_by_key = ((part.key, part.next_observations) for part in self._parts)
        self.next_observations = {key: array for key, array in following_by_key if array is not None}
        #: The only part of a space without keys; ``None`` if there are keys.
        self._only = self._parts[0] if keys is None else None

    def _preference(self, owner: str, prefer: str) -> Preference:
        return preference(owner, prefer)

    def takes(self, obs: Any, next_obs: Any) -> bool:
        """Whether observations can be stored without conversion; for a space without keys only."""
        return self._only is not None and self._only.observations.takes(obs) and self._only.observations.takes(next_obs)

    def refuse_too_large(self, next_obs: Any) -> None:
        """Refuse next observations that could never be stored, before anything changes; for a space without keys only.

        :param next_obs: as for :meth:`write_step`
        """
        part = self._only
        if part is not None and part.store is not None:
            store = part.store.active
            if hasattr(store, "refuse_too_large"):  # at every step: isinstance() looks at all members of a protocol
                cast("BoundedStore", store).refuse_too_large(part.observations.stored_rows(next_obs))

    def write_step(self, step: int, obs: Any, next_obs: Any) -> None:
        """Store a step of all environments: contiguous arrays of the right shape and dtype, or dictionaries."""
        first = step * self._n_envs
        cells = np.arange(first, first + self._n_envs)
        if self._only is not None:
            self._only.write(cells, obs, next_obs)
            return
        for part in self._parts:
            part.write(cells, obs[part.key], None if next_obs is None else next_obs[part.key])

    def read_both(self, cells: NDArray[np.int64], overlap: bool = False) -> dict[str, list[NDArray[Any]]]:
        """Observations and next observations of the same cells, by key.

        :param overlap: whether the two may be views of one array
        """
        return {part.key: part.read_both(cells, overlap) for part in self._parts}

    @property
    def evictions(self) -> int:
        """Number of payloads that the heap has evicted."""
        return self.heap.evicted.cells if self.is_bounded and self.heap is not None else 0

    @property
    def evicted_cells(self) -> int:
        """Number of payloads that the heap has evicted, or could not take."""
        return self.evictions + sum(store.dropped for store in self._evicting()) if self.is_bounded else 0

    @property
    def overhead(self) -> int:
        """Bytes of memory besides payloads: indices and staging areas."""
        own, heap = sum(store.overhead for store in self.stores()), self.heap
        if heap is None:
            return own
        # The size of a heap is that of its memory. The room for payloads is part of it, unless it is a file.
        in_memory = heap.payloads_in_memory if isinstance(heap, FileHeap) else True
        return own + heap.nbytes - (heap.capacity if in_memory else 0)

    @property
    def nbytes_for_batches(self) -> int:
        """Bytes of memory that batches are decoded into, and that decoding takes."""
        kernels = [store.active.kernels for store in self.stores() if isinstance(store.active, FrameStore)]
        cached = sum(own.nbytes_for_batches for own in kernels if isinstance(own, CachingKernels))
        arrays = (array for part in self._parts for array in (part.observations, part.next_observations) if array)
        own = sum(part.memory.nbytes for part in self._parts)
        return sum(array.nbytes_for_batches for array in arrays) + own + cached

    def holds(self, step: int) -> bool:
        """Whether every observation of a step that was written can still be read."""
        return all(bool(store.holds(self._cells[step]).all()) for store in self.stores())

    def held_before(self, step: int, size: int) -> int:
        """Number of steps right before this one, at most ``size``, that the heap still holds."""
        for store in self._evicting():  # not in the order of writing
            size = min(size, store.held_before(step * self._n_envs) // self._n_envs)
        others = [store for store in self.stores() if not hasattr(store.active, "held_before")]
        if not others:
            return size

        def is_held(steps: int) -> bool:
            cells = self._cells[(step - size + steps) % len(self._cells)]
            return all(bool(store.holds(cells).all()) for store in others)

        # Cells are evicted in the order in which they were written: bisection finds the oldest. There may be none, if a
        # step that could not be stored has evicted even the newest.
        return size - bisect_left(range(size), True, key=is_held)

    def positions_of(self, step: int) -> list[Any] | None:
        """Where in the heap the observations of a step are; ``None`` if not all of them have a known position.

        Equal positions before and after a refused step mean equal content: a heap that refuses overwrites nothing.
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

    def explanation(self, key: str) -> str:
        """What was chosen for a key, against what, and what other settings would give; empty without a choice."""
        (built,) = (part.built for part in self._parts if part.key == key)
        return getattr(built, "explanation", "")

    def stores(self) -> list[ObservationStore]:
        """The stores of all keys whose observations have elements."""
        return [part.store for part in self._parts if part.store is not None]

    def clear(self) -> None:
        self.is_clearing = True
        for store in self.stores():
            store.clear()
        self.is_clearing = False

    def state(self) -> State:
        """What another storage with the same arguments needs in order to become this one."""
        self._settle()
        found = State({"has_heap": self.heap is not None})
        if self.heap is not None:
            if not isinstance(self.heap, StatefulHeap):
                hint = "Use another heap, or pickle the buffer."
                raise HeapStateError(type(self.heap).__name__, "save", "this heap has no state()", hint)
            found.put("heap", self.heap.state())
        return self.put_stores(found)

    def put_stores(self, found: State) -> State:
        """Add the states of all stores, without that of the heap."""
        self._settle()
        for number, part in enumerate(self._parts):
            if part.built is None:
                continue
            own, following = _split(part.built.state())
            found.put(str(number), own)
            if part.next_observations is not None:
                found.put(str(len(self._parts) + number), following)
        return found

    def _settle(self) -> None:
        if self.worker is not None:
            self.worker.wait()
        if self.is_clearing:
            self.clear()

    def restore(self, state: State) -> None:
        state.same(has_heap=self.heap is not None)
        if self.heap is not None:
            assert isinstance(self.heap, StatefulHeap)
            saved = state.part("heap")
            cells = saved.facts.get("cells")
            if self.frame_keys and type(cells) is int and 0 < cells < self.heap.cells:
                # Earlier versions stored images as frames only, which take fewer cells than a choice between all ways.
                saved.facts["cells"] = self.heap.cells
            self.heap.restore(saved)
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
            if self.worker is None:  # a guarded store finds the chosen one itself
                part.store = resolve(part.built)

    def _evicting(self) -> list[EvictingStore]:
        actives = [store.active for store in self.stores()]
        return [cast("EvictingStore", store) for store in actives if hasattr(store, "held_before")]


#: The name under which a store that keeps next observations apart has their state.
_NEXT = "next"


def _split(state: State) -> tuple[State, State]:
    """The state of a store without its part for next observations, and this part."""
    if _NEXT not in state.facts:
        return state, State()
    facts = {name: fact for name, fact in state.facts.items() if name != _NEXT}
    arrays = {name: array for name, array in state.arrays.items() if not name.startswith(f"{_NEXT}/")}
    return State(facts, arrays), state.part(_NEXT)


def _joined(own: State, following: State) -> State:
    """The inverse of :func:`_split`."""
    joined = State(dict(own.facts), dict(own.arrays), pieces=own.pieces).put(_NEXT, following)
    joined.stored = {**own.stored, **{f"{_NEXT}/{name}": found for name, found in following.stored.items()}}
    return joined
