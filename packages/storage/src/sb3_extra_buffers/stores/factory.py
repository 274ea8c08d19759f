"""From requests to stores: all observation stores of one buffer, on one heap."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from sb3_extra_buffers import frames, heaps
from sb3_extra_buffers.codecs import CellSpec, CodecSpec, bind, registry
from sb3_extra_buffers.codecs.none import uncompressed
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.frames import FrameGeometry, FrameKernels, Streams, stacks, whole
from sb3_extra_buffers.frames.packing import worst_nbytes
from sb3_extra_buffers.heaps import Heap, HeapPlugin
from sb3_extra_buffers.heaps.memory import MemoryHeap
from sb3_extra_buffers.heaps.state import State, StateError
from sb3_extra_buffers.memory import Bytes
from sb3_extra_buffers.stores.auto import (
    BALANCED,
    ENOUGH,
    MIN_NBYTES,
    PREFERENCES,
    SPEED,
    Bind,
    Candidate,
    Changes,
    Choice,
    Preference,
    Role,
    StackDetector,
    cell_candidates,
    cells_chosen,
    choose_by_content,
    choose_by_space,
    explain,
    frame_candidates,
    log_choice,
    pick,
)
from sb3_extra_buffers.stores.cells import CellStore
from sb3_extra_buffers.stores.chunks import ChunkStore, describe_coding
from sb3_extra_buffers.stores.deferred import DeferredStore, Write, held_from, held_state
from sb3_extra_buffers.stores.frames import FrameStore, slots_for
from sb3_extra_buffers.stores.pairs import PairStore, RewrittenStore, SharedStore
from sb3_extra_buffers.stores.protocol import ObservationStore
from sb3_extra_buffers.stores.raw import RawStore

logger = logging.getLogger("sb3_extra_buffers")

DEFAULT_HEAP = MemoryHeap.label
#: Observations stored as frames have at least this many bytes: smaller frames are not worth a chunk.
MIN_FRAMES_NBYTES = 1024
#: In fewer steps, observations take no more than the frames that every stream keeps uncompressed.
MIN_FRAMES_STEPS = 4
#: Limit for the chunks that are being filled, if every frame were noise.
_MAX_FILLING_NBYTES = 1 << 27
_MIN_CHUNK = 4
#: Frames of a short chunk, as a multiple of those of an observation: read faster where much changes, but larger.
_SHORT_CHUNK = 3
#: Limits for writes that are held back uncompressed.
_MAX_HELD_NBYTES, _MAX_HELD_WRITES = 1 << 23, 256
#: Cells that are compressed together: about as much as a core's own cache holds.
BATCH_NBYTES = 1 << 20
MAX_BATCH = 64
#: Smaller cells are compressed at once; there is little to gain.
MIN_BATCHED_NBYTES = 4096


class Claimed(int):
    """Capacity claimed by a checkpoint, capped at the worst case."""


@dataclass(frozen=True)
class Place:
    """Where payloads are stored, and how they are read.

    :param heap: name of a heap
    :param parameters: parameters of the heap, such as ``capacity`` in bytes, shared by all stores
    :param threads: threads used to decode a batch; ``None`` chooses automatically
    :param bind: makes a requested codec ready for cells
    """

    heap: str = DEFAULT_HEAP
    parameters: Mapping[str, Any] = field(default_factory=dict)
    threads: int | None = None
    bind: Bind = bind

    @property
    def plugin(self) -> HeapPlugin:
        """What the heap declares."""
        return heaps.registry.load(self.heap)

    def __post_init__(self) -> None:
        threads = self.threads
        if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
            raise ParameterError("buffer", "threads", threads, "it must be None or an integer of at least 1")


@dataclass(frozen=True)
class StoreRequest:
    """Observations of one key of the space, to be stored one by one.

    :param label: what they are, for messages
    :param shape: shape of one observation
    :param dtype: dtype of its elements, as they are stored
    :param cells: number of cells
    :param streams: number of environments: cells that are written at once
    :param codec: the requested codec; ``None`` asks for the automatic choice
    :param has_next: whether a cell has a next observation
    :param is_rewritten: whether each cell is written twice: ``optimize_memory_usage`` of Stable-Baselines3
    :param prefer: what the automatic choice looks for: ``"balanced"``, ``"speed"`` or ``"memory"``
    """

    label: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    cells: int
    streams: int = 1
    codec: CodecSpec | None = None
    has_next: bool = False
    is_rewritten: bool = False
    prefer: str = BALANCED

    @property
    def cell(self) -> CellSpec:
        """One observation."""
        return CellSpec(self.dtype, math.prod(self.shape))

    @property
    def row_nbytes(self) -> int:
        """Size of one observation."""
        return int(np.prod(self.shape)) * self.dtype.itemsize

    @property
    def planes(self) -> int:
        """1, or 2 with next observations."""
        return 1 + self.has_next

    @property
    def enough(self) -> int:
        """Number of observations, or changes of an image, that the automatic choice waits for."""
        return max(1, min(ENOUGH, self.cells // 2))


@dataclass(frozen=True)
class FrameRequest(StoreRequest):
    """Observations of one key of the space, to be stored as frames.

    :param preference: how they are stored if nothing else is chosen
    :param is_automatic: whether ``prefer`` decides between ways to store frames, and cells
    """

    preference: Preference = PREFERENCES[SPEED]
    is_automatic: bool = False

    @property
    def geometries(self) -> list[FrameGeometry]:
        """How frames may lie in an observation."""
        return [*stacks(self.shape, self.dtype.itemsize), whole(self.row_nbytes)]

    @property
    def slots(self) -> int:
        """Cells of a heap that this takes, whatever the frames turn out to be."""
        return max(map(self.slots_for, self.geometries))

    def slots_for(self, geometry: FrameGeometry) -> int:
        """Cells of a heap that this takes if frames lie like this."""
        return slots_for(geometry, self.chunk(geometry), self.streams, self.planes * self.cells)

    @property
    def worst_nbytes(self) -> int:
        """Bytes that a ring needs so that it never evicts a chunk."""
        observations = self.planes * self.cells + 2 * self.streams
        return max(
            (-(-observations * one.depth // self.chunk(one)) + 4 * self.streams)
            * worst_nbytes(self.chunk(one), one.frame_nbytes)
            for one in self.geometries
        )

    def chunk(self, geometry: FrameGeometry) -> int:
        """Frames of a chunk."""
        affordable = _MAX_FILLING_NBYTES // (self.streams * geometry.frame_nbytes)
        return max(2 * geometry.depth, _MIN_CHUNK, min(self.preference.chunk, affordable))

    @property
    def coding(self) -> tuple[CodecSpec | Role | None, Role | None]:
        """What compresses every chunk, and what compresses large chunks only."""
        if self.codec is None:
            return self.preference.every, self.preference.fallback
        return None if registry.load(self.codec.name).identity else self.codec, None


def build_stores(
    requests: Sequence[StoreRequest], place: Place, heap: Heap | None = None
) -> tuple[list[ObservationStore], Heap | None]:
    """Make a store for each request, and the heap that they share. Without payloads there is no heap.

    Requested codecs are bound here, so that a wrong level or a codec that is not installed is an error before anything
    is stored.

    :param requests: what to store
    :param place: where to store it
    :param heap: a heap that was made for equal requests; left out, one is made
    """
    builders = [
        _FrameBuilder(request, place) if isinstance(request, FrameRequest) else _CellBuilder(request, place)
        for request in requests
    ]
    cells = sum(builder.heap_cells for builder in builders)
    parameters = _heap_parameters(place, sum(builder.worst_nbytes for builder in builders))
    if heap is None and cells:
        heap = heaps.create(place.heap, cells, **parameters)
    first, built = 0, []
    for builder in builders:
        built.append(builder.build(heap, first))
        first += builder.heap_cells
    return built, heap


def _heap_parameters(place: Place, worst_nbytes: int) -> dict[str, Any]:
    parameters, plugin = dict(place.parameters), place.plugin
    if plugin.fits_worst_case:
        # Room for the worst case of a buffer that is written in order: it evicts only if the user sets a limit.
        parameters.setdefault("capacity", worst_nbytes)
        if isinstance(parameters["capacity"], Claimed):
            parameters["capacity"] = min(int(parameters["capacity"]), worst_nbytes)
    return plugin.complete(place.heap, parameters)  # refuses unknown parameters also if there is no heap


class _CellBuilder:
    """Makes the store of one request, cell by cell. It is also the choosers' memory of what was chosen."""

    def __init__(self, request: StoreRequest, place: Place) -> None:
        self.request = request
        self._place = place
        self._plugin = place.plugin
        self._choice = (
            choose_by_space(request.cell)
            if request.codec is None
            else Choice(place.bind(request.codec, request.cell), "")
        )

    @property
    def worst_nbytes(self) -> int:
        """Bytes that a ring needs so that it never evicts a cell."""
        request, codec = self.request, None if self._choice is None else self._choice.codec
        # Any codec stores a cell that does not compress raw, with a checksum if it has one.
        cell = request.cell.nbytes + 4 if codec is None else codec.max_encoded_nbytes
        writes = request.planes * request.cells * (1 + request.is_rewritten)
        # A step that does not fit before the end of the ring starts over and leaves a gap.
        return cell * (writes + 2 * request.streams)

    @property
    def heap_cells(self) -> int:
        """Cells of the heap that the store takes."""
        is_raw = self._choice is not None and self._is_raw(self._choice)
        return 0 if is_raw else self.request.planes * self.request.cells

    def build(self, heap: Heap | None, first: int) -> ObservationStore:
        """Make the store, in a section of the heap that begins with the cell ``first``."""
        request = self.request
        observations = self._single(heap, first, every_step=True)
        if request.is_rewritten:
            return RewrittenStore(observations)
        if not request.has_next:
            return observations
        others = self._single(heap, first + request.cells, every_step=False)
        # Comparing small rows costs more than it saves; but where a step may be refused, it is one write, not two.
        is_strict = isinstance(heap, heaps.StrictHeap) and heap.refuses_when_full
        if request.row_nbytes < MIN_NBYTES and not is_strict:
            return PairStore(observations, others)
        return SharedStore(observations, others, request.streams, is_bounded=not self._plugin.grows)

    def build_chosen(self, choice: Choice, heap: Heap, first: int) -> ObservationStore:
        """Make the store of images that turned out not to be stacked."""
        self._choice = choice
        return self.build(heap, first)

    def choose(
        self, held: list[Write], write: Write, heap: Heap | None, first: int, every_step: bool
    ) -> ObservationStore | None:
        """Make a store for these rows, or wait for more. The observations choose for all stores of the request."""
        request = self.request
        if self._choice is None:
            writes = [*held, write]
            # Where a step may be refused or evicted, it is stored at once.
            if self._plugin.grows:
                count = len(writes[0].cells) + sum(
                    len(after.rows) for before, after in pairwise(writes) if not np.array_equal(before.rows, after.rows)
                )
                nbytes = sum(one.rows.nbytes for one in writes)
                has_room = len(writes) < _MAX_HELD_WRITES and nbytes < 2 * _MAX_HELD_NBYTES
                if not every_step or (count < request.enough and has_room):
                    return None
            rows = np.concatenate([one.rows for one in writes])
            has_next = request.has_next and request.row_nbytes >= MIN_NBYTES
            self._choice = choose_by_content(request.label, request.cell, rows, request.prefer, has_next=has_next)
        return self._store(self._choice, heap, first, every_step)

    @property
    def explanation(self) -> str:
        """What was chosen, and against what; empty before the choice."""
        return "" if self._choice is None else self._choice.explanation

    def choice(self) -> dict[str, Any]:
        """What was chosen, as JSON."""
        assert self._choice is not None
        codec, why = self._choice.codec, self._choice.explanation
        return {"codec": None if codec is None else codec.spec.to_json(), "reason": self._choice.reason, "why": why}

    def repeat(self, choice: State) -> Choice:
        """Choose what was chosen before, also if other codecs are installed by now."""
        codec = choice.fact("codec", (dict, type(None)))
        bound = None if codec is None else self._place.bind(CodecSpec.from_json(codec), self.request.cell)
        self._choice = Choice(bound, choice.fact("reason", str), str(choice.facts.get("why", "")))
        return self._choice

    def _single(self, heap: Heap | None, first: int, *, every_step: bool) -> ObservationStore:
        """A store of observations alone."""
        if self._choice is not None:
            return self._store(self._choice, heap, first, every_step)
        chooser = _CodecChooser(self, heap, first, every_step)
        return DeferredStore(self.request.cells, self.request.cell.nbytes, chooser)

    def _is_raw(self, choice: Choice) -> bool:
        # A heap with a limit or a file holds uncompressed cells, too: the user chose it for them.
        is_uncompressed = choice.codec is None or registry.load(choice.codec.spec.name).identity
        return is_uncompressed and self._plugin.in_memory

    def _store(self, choice: Choice, heap: Heap | None, first: int, every_step: bool) -> ObservationStore:
        request = self.request
        if self._is_raw(choice):
            return RawStore(request.cells, request.cell.nbytes, reason=choice.reason)
        assert heap is not None
        codec = choice.codec or uncompressed(request.cell)
        batch = self._batch() if every_step else 0
        threads = self._place.threads
        return CellStore(codec, heap, first, request.cells, reason=choice.reason, threads=threads, batch=batch)

    def _batch(self) -> int:
        """Cells to compress together; 0 if that does not pay."""
        request, nbytes = self.request, self.request.cell.nbytes
        batch = min(BATCH_NBYTES // nbytes, MAX_BATCH, request.cells // 2)
        pays = nbytes >= MIN_BATCHED_NBYTES and batch >= 2 * request.streams
        # With a limited capacity, a batch would be one row: too large for a small heap, and evicted as a whole.
        return batch if pays and self._plugin.grows else 0


@dataclass
class _CodecChooser:
    """Chooses a codec by the first rows."""

    builder: _CellBuilder
    heap: Heap | None
    first: int
    every_step: bool

    @property
    def explanation(self) -> str:
        return self.builder.explanation

    def choose(self, held: list[Write], write: Write, /) -> ObservationStore | None:
        return self.builder.choose(held, write, self.heap, self.first, self.every_step)

    def forget(self) -> None:
        pass

    def describe(self) -> str:
        return f"auto (not yet chosen, until {self.builder.request.enough} observations are stored)"

    def state(self, chosen: ObservationStore | None, held: list[Write], /) -> State:
        if chosen is None:
            found = held_state(held, self.builder.request.cell.nbytes)
            found.facts["is_chosen"] = False
            return found
        return State({"is_chosen": True, "choice": self.builder.choice()}).put("store", chosen.state())

    def restore(self, state: State, /) -> tuple[ObservationStore | None, list[Write]]:
        if not state.fact("is_chosen", bool):
            request = self.builder.request
            # Earlier versions chose at the first write, so that nothing was held.
            held = held_from(state, request.cells, request.cell.nbytes, 1) if "sizes" in state.facts else []
            return None, held
        choice = self.builder.repeat(state.part("choice"))
        store = self.builder._store(choice, self.heap, self.first, self.every_step)
        store.restore(state.part("store"))
        return store, []


class _FrameBuilder:
    """Makes the store of one request for frames."""

    def __init__(self, request: FrameRequest, place: Place) -> None:
        if any(request.slots * (request.chunk(one) + 2 * one.depth) >= 2**31 for one in request.geometries):
            hint = "Use layout='cells', or several buffers."
            raise ParameterError(request.label, "buffer_size", request.cells, "frames are counted in 31 bits", hint)
        if request.codec is not None:
            # Complete parameters. A codec that is not installed is refused before anything is stored.
            request = replace(request, codec=bind(request.codec, CellSpec(np.uint8, 256)).spec)
        self._request = request
        self._place = place
        self._is_bounded = not place.plugin.grows
        self.cells: _CellBuilder | None = None
        # Only where nothing is evicted: frames and cells are evicted in different ways.
        if request.is_automatic and place.plugin.grows and place.plugin.in_memory:
            self.cells = _CellBuilder(request, place)
        self.heap_cells = max(request.slots, 0 if self.cells is None else self.cells.heap_cells)
        self.worst_nbytes = request.worst_nbytes

    def build(self, heap: Heap | None, first: int) -> ObservationStore:
        assert heap is not None
        request = self._request
        # Kernels are loaded, and compiled where need be, with the buffer, not with the first step of a training run.
        chooser = _FrameChooser(self, heap, first, frames.create(), request)
        if not chooser.detector.stacks and self.cells is None:
            return chooser.construct(whole(request.row_nbytes))
        return DeferredStore(request.cells, request.row_nbytes, chooser)

    def construct(
        self, geometry: FrameGeometry, heap: Heap, first: int, kernels: FrameKernels, how: Preference | None = None
    ) -> FrameStore:
        """Make the store for frames that lie like this, stored as requested or in the way that was chosen."""
        request, slots, streams = self._request, self._request.slots, self._request.streams
        if how is not None:
            request = replace(request, preference=how)
            slots = max(slots, request.slots_for(geometry))
        chunk = request.chunk(geometry)
        chunks = ChunkStore(
            kernels,
            *request.coding,
            heap,
            first,
            slots,
            streams,
            geometry.frame_nbytes,
            self._place.threads,
            is_bounded=self._is_bounded,
        )
        store = FrameStore(
            Streams(geometry, chunk, streams, request.cells, slots, request.planes), chunks, kernels, request.cells
        )
        logger.info("%s: %s", request.label, store.describe())
        return store


class _FrameChooser:
    """Waits until the data say how frames are stacked, and, if the choice is automatic, which way to store them suits
    ``prefer``: where much changes from one image to the next, cells can be smaller, and faster to read.
    """

    def __init__(
        self, builder: _FrameBuilder, heap: Heap, first: int, kernels: FrameKernels, request: FrameRequest
    ) -> None:
        self._builder = builder
        self._heap = heap
        self._first = first
        self._kernels = kernels
        self._request = request
        #: How frames are stored, if that was chosen.
        self._how: Preference | None = None
        #: What was chosen, and against what; empty before the choice, or without one.
        self.explanation = ""
        possible = tuple(stacks(request.shape, request.dtype.itemsize))
        self.detector = StackDetector(possible, request.row_nbytes, request.streams)

    def construct(self, geometry: FrameGeometry) -> FrameStore:
        return self._builder.construct(geometry, self._heap, self._first, self._kernels, self._how)

    def choose(self, held: list[Write], write: Write, /) -> ObservationStore | None:
        detector, is_automatic = self.detector, self._builder.cells is not None
        found = detector.see(write.cells, write.rows)
        # Two steps at least are held, however many environments there are.
        room = max((1 + is_automatic) * _MAX_HELD_NBYTES, 4 * write.rows.nbytes)
        nbytes = sum(other.rows.nbytes for other in held) + write.rows.nbytes
        if len(held) < (1 + is_automatic) * _MAX_HELD_WRITES and nbytes <= room:
            is_known = found is not None or not detector.stacks or detector.gives_up(len(write.rows))
            if not is_known or (is_automatic and detector.changes < self._request.enough):
                return None
        geometry = detector.best_guess()
        if is_automatic:
            candidates = self._candidates([*held, write], geometry)
            if candidates:
                return self._chosen(candidates, geometry)
            self._how = self._request.preference  # saved, so that a loaded buffer stores frames in the same way
        return self.construct(geometry)

    def _chosen(self, candidates: list[Candidate], geometry: FrameGeometry) -> ObservationStore:
        request, cells = self._request, self._builder.cells
        assert cells is not None
        chosen = pick(candidates, request.prefer)
        self.explanation = explain(candidates, request.prefer)
        if chosen.frames is not None:
            self._how = chosen.frames
            logger.info("%s: %s", request.label, self.explanation)
            return self.construct(geometry)
        choice = cells_chosen(candidates, request.prefer)
        log_choice(request.label, choice)
        return cells.build_chosen(choice, self._heap, self._first)

    def _candidates(self, writes: list[Write], geometry: FrameGeometry) -> list[Candidate]:
        """All ways to store these observations; none if they do not change."""
        request = self._request
        rows = np.concatenate([write.rows for write in writes if not write.is_next] or [writes[0].rows])
        streams = np.concatenate([write.cells for write in writes if not write.is_next] or [writes[0].cells])
        newest = np.ascontiguousarray(geometry.split(rows)[:, -1])
        frames: list[Bytes] = []
        firsts: list[int] = []
        for stream in range(request.streams):
            own = newest[streams % request.streams == stream]
            is_new = np.ones(len(own), np.bool_)
            is_new[1:] = (own[1:] != own[:-1]).any(axis=1)
            firsts += [len(frames)] * int(np.count_nonzero(is_new))
            frames += list(own[is_new])
        few, begun = frames[: 2 * ENOUGH], len({*firsts})
        changed = len(few) - len({*firsts[: len(few)]})
        if not changed:
            return []
        # What begins a stream is no change, neither of a frame nor of an observation.
        observations = max(1, (len(rows) - begun) * changed // (len(frames) - begun))
        changes = Changes(geometry, request.planes, np.stack(few), firsts[: len(few)], observations)
        sizes = {request.chunk(geometry)}
        short = replace(request, preference=Preference(max(_MIN_CHUNK, _SHORT_CHUNK * geometry.depth)))
        if short.slots_for(geometry) <= self._builder.heap_cells:
            sizes.add(short.chunk(geometry))
        return frame_candidates(changes, sorted(sizes)) + cell_candidates(request.cell, rows, has_next=request.has_next)

    def forget(self) -> None:
        # What was learnt about stacks stays: one rollout can be too short to learn it.
        self.detector.last = {}

    def describe(self) -> str:
        if self._builder.cells is not None and self.detector.found is not None:
            return f"auto (not yet chosen, until {self._request.enough} changes are seen)"
        return f"frames (not yet known how they are stacked; {describe_coding(*self._request.coding)})"

    def state(self, chosen: ObservationStore | None, held: list[Write], /) -> State:
        if isinstance(chosen, FrameStore):
            facts: dict[str, Any] = {"geometry": _numbers(chosen.streams.geometry), "why": self.explanation}
            if self._how is not None:
                facts["how"] = self._how.to_json()
            return State(facts).put("store", chosen.state())
        if chosen is not None:
            assert self._builder.cells is not None
            return State({"geometry": None, "cells": self._builder.cells.choice()}).put("store", chosen.state())
        found, detector = held_state(held, self._request.row_nbytes), self.detector
        refuted = [_numbers(geometry) for geometry in detector.refuted]
        found.facts |= {"geometry": None, "streams": list(detector.last), "misfits": detector.misfits}
        found.facts |= {"refuted": refuted, "changes": detector.changes}
        found.facts["found"] = None if detector.found is None else _numbers(detector.found)
        no_rows = np.empty((0, self._request.row_nbytes), np.uint8)
        found.arrays["last"] = np.concatenate([no_rows, *(row[np.newaxis] for row in detector.last.values())])
        return found

    def restore(self, state: State, /) -> tuple[ObservationStore | None, list[Write]]:
        store: ObservationStore
        if state.facts.get("cells") is not None:
            cells = self._builder.cells
            if cells is None:
                raise StateError("observations were stored as cells, which this buffer does not do")
            store = cells.build_chosen(cells.repeat(state.part("cells")), self._heap, self._first)
            self.explanation = cells.explanation
        elif state.facts.get("geometry") is not None:
            self._how = self._saved_how(state)
            self.explanation = str(state.facts.get("why", ""))
            store = self.construct(self._geometry(state.numbers("geometry", 3)))
        else:
            request, detector = self._request, self.detector
            held = held_from(state, request.cells, request.row_nbytes, request.planes)
            streams = state.numbers("streams")
            last = state.array("last", np.uint8, len(streams), request.row_nbytes)
            detector.last = {stream: row.copy() for stream, row in zip(streams, last)}
            detector.misfits = state.number("misfits", 0, 1 << 62)
            detector.refuted = {self._geometry(numbers) for numbers in state.fact("refuted", list)}
            if state.facts.get("found") is not None:  # absent in states of earlier versions, like the number of changes
                detector.found = self._geometry(state.numbers("found", 3))
            if "changes" in state.facts:
                detector.changes = state.number("changes", 0, 1 << 62)
            return None, held
        store.restore(state.part("store"))
        return store, []

    def _saved_how(self, state: State) -> Preference | None:
        """How frames were stored. Earlier versions did not choose: they did what ``prefer`` says of frames."""
        if "how" not in state.facts:
            return PREFERENCES[self._request.prefer] if self._builder.cells is not None else None
        try:
            how = Preference.from_json(state.fact("how", dict))
        except (ValueError, KeyError, TypeError) as error:
            raise StateError(f"frames cannot be stored as {state.facts['how']!r}") from error
        request = replace(self._request, preference=how)
        if request.slots_for(self._geometry(state.numbers("geometry", 3))) > self._builder.heap_cells:
            raise StateError(f"chunks of {how.chunk} frames take more than {self._builder.heap_cells} cells")
        return how

    def _geometry(self, numbers: Any) -> FrameGeometry:
        for geometry in self._request.geometries:
            if numbers == _numbers(geometry):
                return geometry
        raise StateError(f"observations cannot be stacked as {numbers!r}")


def _numbers(geometry: FrameGeometry) -> list[int]:
    return [geometry.depth, geometry.pixels, geometry.group]
