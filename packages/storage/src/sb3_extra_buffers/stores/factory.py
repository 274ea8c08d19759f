"""From what is asked for to stores: all stores of one buffer, on one heap."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sb3_extra_buffers import heaps
from sb3_extra_buffers.codecs import CellSpec, Codec, CodecLike, CodecSpec, bind
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.heaps import Heap
from sb3_extra_buffers.heaps.state import State
from sb3_extra_buffers.memory import Bytes
from sb3_extra_buffers.stores.batched import BatchedStore
from sb3_extra_buffers.stores.cell_planes import CellPlanes
from sb3_extra_buffers.stores.cells import CellStore
from sb3_extra_buffers.stores.choice import (
    Choice,
    choose_by_content,
    choose_by_space,
    judge_content,
    largest_instead,
    log_choice,
)
from sb3_extra_buffers.stores.framing import FrameDemand
from sb3_extra_buffers.stores.lazy import LazyStore
from sb3_extra_buffers.stores.planes import Plane
from sb3_extra_buffers.stores.protocol import Store
from sb3_extra_buffers.stores.raw import RawStore

_MEMORY = "memory"
#: How much may wait to be compressed in a batch: about what a core's own cache holds.
BATCH_NBYTES = 1 << 20
MAX_BATCH = 64
#: Smaller cells are compressed as they come; there is little to gain.
MIN_BATCHED_NBYTES = 4096


class Claimed(int):
    """A capacity that nobody here asked for, but a file that was loaded. Disk space is claimed when a heap is made, so
    it gets no more than its stores can need.
    """


@dataclass(frozen=True)
class Place:
    """Where stores keep their payloads, and how many threads read them.

    :param heap: the name of a heap
    :param parameters: what the heap takes, such as ``capacity`` in bytes, shared by all stores
    :param threads: how many threads decode a batch; ``None`` uses as many as pay
    :param bind: makes a codec that was asked for ready for cells
    """

    heap: str = _MEMORY
    parameters: Mapping[str, Any] = field(default_factory=dict)
    threads: int | None = None
    bind: Callable[[CodecLike, CellSpec], Codec] = bind

    @property
    def grows(self) -> bool:
        """Whether the heap has no limit."""
        plugin = heaps.registry.load(self.heap)
        return "capacity" not in {*plugin.required, *plugin.parameters}

    def __post_init__(self) -> None:
        threads = self.threads
        if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
            raise ParameterError("buffer", "threads", threads, "it must be None or an integer of at least 1")


@dataclass(frozen=True)
class Demand:
    """Stores of equal cells with equal content, to be stored with the same codec.

    :param label: what the cells are, for messages
    :param cell: what one cell holds
    :param counts: the number of cells of each store; the first is written to at every step
    :param codec: what was asked for; ``None`` leaves the choice to us
    :param writes: how often each cell may be written before all have been written again
    :param row: how many cells are written at once
    """

    label: str
    cell: CellSpec
    counts: tuple[int, ...]
    codec: CodecSpec | None
    writes: int = 1
    row: int = 1


def build_stores(demands: Sequence[Demand | FrameDemand], place: Place) -> tuple[list[list[Store]], Heap | None]:
    """Make the stores of each demand, and the heap that they share. Without payloads there is no heap.

    Codecs that were asked for are bound here, so that a wrong level or a codec that is not installed is an error
    before anything is stored.
    """
    builders = [
        _FrameBuilder(demand, place) if isinstance(demand, FrameDemand) else _Builder(demand, place)
        for demand in demands
    ]
    cells = sum(builder.cells for builder in builders)
    parameters = _heap_parameters(place, builders)
    heap = heaps.create(place.heap, cells, **parameters) if cells else None
    first, built = 0, []
    for builder in builders:
        built.append(builder.build_all(heap, first))
        first += builder.cells
    return built, heap


def _heap_parameters(place: Place, builders: Sequence[_Builder | _FrameBuilder]) -> dict[str, Any]:
    parameters = dict(place.parameters)
    if place.heap == "mmap":
        if parameters.get("reopen"):
            # Payloads without actions, rewards and the choice of a codec are no transitions.
            allowed = "a buffer is not made from a heap alone"
            hint = (
                "Load the last checkpoint of the buffer, without reopen and with another path, or none. Payloads in "
                "the file that were added since cannot be found again: remove it."
            )
            raise ParameterError("buffer", "heap_kwargs", parameters, allowed, hint)
        # Room for the worst case of a buffer that is written in order: it evicts only if the user sets a limit.
        worst = sum(builder.worst_nbytes for builder in builders)
        parameters.setdefault("capacity", worst)
        if isinstance(parameters["capacity"], Claimed):
            parameters["capacity"] = min(int(parameters["capacity"]), worst)
    return heaps.registry.load(place.heap).complete(place.heap, parameters)  # refuses what no heap takes


class _FrameBuilder:
    """Makes the planes of one demand for frames."""

    def __init__(self, demand: FrameDemand, place: Place) -> None:
        self._demand = demand = demand.complete()
        self._place = place
        self._cells: _Builder | None = None
        # Only where nothing is dropped: what is lost of frames and what is lost of cells are two different things.
        if demand.may_be_cells and place.heap == _MEMORY:
            cell = CellSpec(demand.dtype, math.prod(demand.shape))
            counts = (demand.cells,) * demand.planes
            self._cells = _Builder(Demand(demand.label, cell, counts, None, row=demand.streams), place)
        self.cells = max(demand.slots, self._cells.cells if self._cells is not None else 0)
        self.worst_nbytes = demand.worst_nbytes

    def build_all(self, heap: Heap | None, first: int) -> list[Store]:
        assert heap is not None
        instead = None if self._cells is None else _Instead(self._cells, heap, first, self._demand.streams)
        frames = self._demand.build(heap, first, self._place.threads, instead)
        return [Plane(frames, number) for number in range(self._demand.planes)]


class _Builder:
    """Makes the stores of one demand."""

    def __init__(self, demand: Demand, place: Place) -> None:
        self.demand = demand
        self._place = place
        if demand.codec is None:
            self._choice = choose_by_space(demand.cell)
        else:
            self._choice = Choice(place.bind(demand.codec, demand.cell), "")

    @property
    def raw(self) -> bool:
        """Whether it is known that the cells need no heap."""
        return self._choice is not None and self._is_raw(self._choice)

    @property
    def worst_nbytes(self) -> int:
        """How many bytes a ring needs so that it never evicts a cell of this demand."""
        codec = None if self._choice is None else self._choice.codec
        # Any codec stores a cell that does not compress raw, with a checksum if it has one.
        cell = self.demand.cell.nbytes + 4 if codec is None else codec.max_encoded_nbytes
        # A row that does not fit before the end of the ring starts over and leaves a gap.
        return cell * (sum(self.demand.counts) * self.demand.writes + 2 * self.demand.row)

    @property
    def cells(self) -> int:
        """How many cells of the heap the stores take."""
        return 0 if self.raw else sum(self.demand.counts)

    def build_all(self, heap: Heap | None, first: int) -> list[Store]:
        stores = []
        for number, count in enumerate(self.demand.counts):
            stores.append(self.build(heap, first, count, every_step=not number))
            first += count
        return stores

    def build(self, heap: Heap | None, first: int, count: int, *, every_step: bool) -> Store:
        if self._choice is not None:
            return self._store(self._choice, heap, first, count, every_step)
        return LazyStore(count, self.demand.cell.nbytes, _Later(self, heap, first, count, every_step))

    def build_for(self, rows: Bytes, heap: Heap | None, first: int, count: int, every_step: bool) -> Store:
        """Make a store for what is about to be stored. The first of the demand's stores chooses for all of them."""
        if self._choice is None:
            self._choice = choose_by_content(self.demand.label, self.demand.cell, rows)
        return self._store(self._choice, heap, first, count, every_step)

    def choose(self, choice: Choice) -> None:
        """Choose for all of the demand's stores."""
        self._choice = choice

    def choice(self) -> dict[str, Any]:
        """What was chosen for all of the demand's stores."""
        assert self._choice is not None
        codec = self._choice.codec
        return {"codec": None if codec is None else codec.spec.to_json(), "reason": self._choice.reason}

    def choose_again(self, choice: State) -> Choice:
        """Choose what was chosen before, also if something else is installed by now."""
        codec = choice.fact("codec", (dict, type(None)))
        bound = None if codec is None else self._place.bind(CodecSpec.from_json(codec), self.demand.cell)
        self._choice = Choice(bound, choice.fact("reason", str))
        return self._choice

    def _is_raw(self, choice: Choice) -> bool:
        # A heap with a budget or a file holds raw cells too: that is what the user chose it for.
        no_codec = choice.codec is None or choice.codec.spec.name == "none"
        return no_codec and self._place.heap == _MEMORY

    def _store(self, choice: Choice, heap: Heap | None, first: int, count: int, every_step: bool) -> Store:
        if self._is_raw(choice):
            return RawStore(count, self.demand.cell.nbytes, reason=choice.reason)
        assert heap is not None
        codec = choice.codec or bind("none", self.demand.cell)
        store = CellStore(codec, heap, first, count, reason=choice.reason, threads=self._place.threads)
        return BatchedStore(store, batch) if every_step and (batch := self._batch(count)) else store

    def _batch(self, count: int) -> int:
        """How many cells to compress together; 0 if that does not pay."""
        nbytes = self.demand.cell.nbytes
        batch = min(BATCH_NBYTES // nbytes, MAX_BATCH, count // 2)
        pays = nbytes >= MIN_BATCHED_NBYTES and batch >= 2 * self.demand.row
        # With a limited capacity, a batch would be one row: too large for a small heap, and evicted as a whole.
        return batch if pays and self._place.grows else 0


@dataclass
class _Later:
    """What a lazy store calls when it sees its first rows."""

    builder: _Builder
    heap: Heap | None
    first: int
    count: int
    every_step: bool

    def __call__(self, rows: Bytes, /) -> Store:
        return self.builder.build_for(rows, self.heap, self.first, self.count, self.every_step)

    def choice(self) -> dict[str, Any]:
        return self.builder.choice()

    def repeat(self, choice: State, /) -> Store:
        chosen = self.builder.choose_again(choice)
        return self.builder._store(chosen, self.heap, self.first, self.count, self.every_step)


@dataclass
class _Instead:
    """Makes cells of what turns out to be no stack of frames."""

    builder: _Builder
    heap: Heap
    first: int
    streams: int

    def choose(self, rows: Bytes, patches: Bytes, /) -> CellPlanes | None:
        demand = self.builder.demand
        choice = judge_content(demand.cell, rows)
        if rows.nbytes / choice.ratio > largest_instead(rows, patches):
            return None
        log_choice(demand.label, choice)
        self.builder.choose(choice)
        return self._made()

    def choice(self) -> dict[str, Any]:
        return self.builder.choice()

    def repeat(self, choice: State, /) -> CellPlanes:
        self.builder.choose_again(choice)
        return self._made()

    def _made(self) -> CellPlanes:
        return CellPlanes(self.builder.build_all(self.heap, self.first), self.streams)
