"""Rules about requests that cannot be granted."""

from __future__ import annotations

import numpy as np

from sb3_extra_buffers.errors import HeapStateError, ParameterError
from sb3_extra_buffers.testing.heap_subject import HEAP_RULES, HeapSubject, expect_holds, put
from sb3_extra_buffers.testing.rule import expect_raises


@HEAP_RULES.rule("wrong-cells", "Cells that do not exist, or stand twice in a row, are refused and nothing changes.")
def wrong_cells(subject: HeapSubject) -> None:
    heap = subject.create(10)
    put(heap, [3], [b"three"])
    for cells in ([-1], [10], [0, 10], [[0, 1]], [0.5]):
        wrong = np.array(cells)
        expect_raises(ParameterError, f"reserving cells {cells}", heap.reserve, wrong, 10)
        expect_raises(ParameterError, f"locating cells {cells}", heap.locate, wrong)
    expect_raises(HeapStateError, "reserving a cell twice", heap.reserve, np.array([4, 5, 4]), 10)
    expect_raises(ParameterError, "reserving -1 bytes", heap.reserve, np.array([4]), -1)
    expect_holds(heap, {3: b"three"}, "after refusing wrong cells")


@HEAP_RULES.rule(
    "wrong-lengths", "Lengths that do not fit the reservation are refused; it stays open and nothing changes."
)
def wrong_lengths(subject: HeapSubject) -> None:
    heap = subject.create(10)
    expect_raises(HeapStateError, "committing what was not reserved", heap.commit, np.array([1]))
    room = heap.reserve(np.array([1, 2]), 10)
    room[:] = np.frombuffer(b"0123456789", np.uint8)
    for lengths in ([5], [5, 5, 0], [6, 5], [-1, 5], [0, 5], [5.0, 5.0], [[5, 5]]):
        expect_raises(HeapStateError, f"committing lengths {lengths}", heap.commit, np.array(lengths))
        expect_holds(heap, {}, f"after refusing lengths {lengths}")
    heap.commit(np.array([4, 6]))
    expect_holds(heap, {1: b"0123", 2: b"456789"}, "after committing the right lengths")


@HEAP_RULES.rule("wrong-position", "Reading where no payload is raises instead of returning bytes.")
def wrong_position(subject: HeapSubject) -> None:
    heap = subject.create(10)
    put(heap, [1], [b"hello, dear heap"])
    start = int(heap.locate(np.array([1]))[0][0])
    for position, length in (
        (-1, 1),
        (-1, 0),
        (start, -5),
        (start, 0),
        (start, 17),
        (start, 1 << 40),
        (start, (1 << 63) - 1),
        ((1 << 63) - 5, 99),
        (1 << 62, 5),
        (-(1 << 40), 5),
    ):
        what = f"reading {length} bytes at {position}"
        expect_raises(HeapStateError, what, heap.view, position, length)
        starts, lengths = np.array([start, position]), np.array([5, length])
        expect_raises(HeapStateError, f"{what} by address", heap.addresses, starts, lengths)


@HEAP_RULES.rule("wrong-parameters", "A heap without cells, or with parameters it does not know, is refused.")
def wrong_parameters(subject: HeapSubject) -> None:
    for cells in (0, -1, True, 1.5):
        expect_raises(ParameterError, f"{cells!r} cells", subject.create, cells)
    expect_raises(ParameterError, "an unknown parameter", subject.create, no_such_parameter=1)
    if subject.evicts:
        for capacity in (0, -1, True, "1GB"):
            expect_raises(ParameterError, f"a capacity of {capacity!r}", subject.create, capacity=capacity)
