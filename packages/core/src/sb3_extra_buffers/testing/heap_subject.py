"""The heap under test, a model of what it must hold, and how the rules get at it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from sb3_extra_buffers.heaps import Heap, HeapPlugin, StrictHeap, registry
from sb3_extra_buffers.registry import Scalar
from sb3_extra_buffers.testing.rule import NotApplicable, RuleBook, expect


@dataclass(frozen=True)
class HeapSubject:
    """A heap, before it is made.

    :param name: the name under which it is registered
    :param plugin: what its distribution hands over
    :param parameters: parameters to create it with; ``capacity`` marks a heap that evicts, and must be at least 1 MiB
    """

    name: str
    plugin: HeapPlugin
    parameters: dict[str, Scalar] = field(default_factory=dict)

    @classmethod
    def installed(cls, name: str, parameters: dict[str, Scalar]) -> HeapSubject:
        """The heap that is registered under a name."""
        return cls(name, registry.load(name), parameters)

    @property
    def is_limited(self) -> bool:
        """Whether the heap has a fixed capacity."""
        return "capacity" in self.parameters

    @property
    def evicts(self) -> bool:
        """Whether the heap has a fixed capacity and drops its oldest rows to stay within it."""
        heap = self.create(1)
        return self.is_limited and not (isinstance(heap, StrictHeap) and heap.refuses_when_full)

    def create(self, cells: int = 100, **parameters: Scalar) -> Heap:
        """Make a heap."""
        return self.plugin.factory(cells, **self.plugin.complete(self.name, {**self.parameters, **parameters}))

    def with_room(self, cells: int, nbytes: int) -> Heap:
        """Make a heap that can hold so many bytes without evicting."""
        return self.create(cells, **({"capacity": nbytes} if self.is_limited else {}))

    def __str__(self) -> str:
        return self.name


#: The contract of a heap.
HEAP_RULES: RuleBook[HeapSubject] = RuleBook()


def absent(capability: str) -> NotApplicable:
    """For rules about an optional capability that the heap does not have."""
    return NotApplicable(f"the heap has no {capability}")


def having(subject: HeapSubject, capability: type, members: str, cells: int, nbytes: int) -> Any:
    """Make a heap with room for so many bytes; skip the rule if it has not this optional capability."""
    heap = subject.with_room(cells, nbytes)
    if not isinstance(heap, capability):
        raise absent(members)
    return heap


def evicting(subject: HeapSubject, cells: int, capacity: int) -> Heap:
    """Make a heap of this capacity; skip the rule for heaps that never evict."""
    if not subject.is_limited:
        raise NotApplicable("the heap has no fixed capacity")
    if not subject.evicts:
        raise NotApplicable("the heap refuses rows when it is full")
    return subject.create(cells, capacity=capacity)


@cache
def _noise() -> bytes:
    return np.random.default_rng(0).integers(0, 256, 1 << 23, np.uint8).tobytes()


def payload(cell: int, version: int, length: int) -> bytes:
    """Bytes that differ for each cell and version: a part of the same noise, of up to 4 MiB."""
    begin = (cell * 1_000_003 + version * 7_919 + length * 101) % (1 << 22)
    return _noise()[begin : begin + length]


def put(heap: Heap, cells: Sequence[int], payloads: Sequence[bytes], slack: int = 100) -> None:
    """Store one row, reserving ``slack`` bytes more than it takes."""
    data = b"".join(payloads)
    room = heap.reserve(np.array(cells, np.int64), len(data) + slack)
    room[: len(data)] = np.frombuffer(data, np.uint8)
    heap.commit(np.array([len(part) for part in payloads], np.int64))


def fill(heap: Heap, model: dict[int, bytes]) -> None:
    """Store each payload as a row of its own."""
    for cell, content in model.items():
        put(heap, [cell], [content])


def held(heap: Heap) -> dict[int, bytes]:
    """Everything that can be located, by cell."""
    starts, lengths = heap.locate(np.arange(heap.cells))
    places = enumerate(zip(starts.tolist(), lengths.tolist()))
    return {cell: bytes(heap.view(start, length)) for cell, (start, length) in places if start >= 0}


def expect_holds(heap: Heap, expected: dict[int, bytes], what: str) -> None:
    """Fail unless the heap holds exactly this, and counts it right."""
    found = held(heap)
    differ = sorted(found.keys() ^ expected.keys())
    expect(not differ, f"{what}: cells {differ} differ in presence")
    wrong = [cell for cell in expected if found[cell] != expected[cell]]
    expect(not wrong, f"{what}: cells {wrong} hold other bytes")
    live = sum(map(len, expected.values()))
    expect(heap.live == live, f"{what}: live says {heap.live}, the payloads have {live} bytes")
    expect(heap.capacity >= live, f"{what}: the capacity {heap.capacity} is less than the {live} live bytes")
