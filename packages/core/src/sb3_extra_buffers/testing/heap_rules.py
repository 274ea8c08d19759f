"""Rules for heaps about storing, reading and refusing."""

from __future__ import annotations

import ctypes

import numpy as np

from sb3_extra_buffers.errors import HeapStateError, ParameterError
from sb3_extra_buffers.heaps import FileHeap
from sb3_extra_buffers.testing.heap_subject import HEAP_RULES, HeapSubject, expect_holds, payload, put
from sb3_extra_buffers.testing.rule import expect, expect_raises


@HEAP_RULES.rule("empty", "A new heap holds nothing: every cell has position -1 and length 0.")
def empty(subject: HeapSubject) -> None:
    heap = subject.create(10)
    expect(heap.cells == 10, f"made for 10 cells, it says {heap.cells}")
    starts, lengths = heap.locate(np.arange(10))
    expect((starts == -1).all() and (lengths == 0).all(), f"positions {starts.tolist()}, lengths {lengths.tolist()}")
    expect_holds(heap, {}, "a new heap")


@HEAP_RULES.rule("read-back", "A cell holds the payload that was last committed for it, of any length.")
def read_back(subject: HeapSubject) -> None:
    heap = subject.create(50)
    model: dict[int, bytes] = {}
    for version, length in enumerate((100, 1, 2, 17, 40_000, 3)):
        for cells in ([0], [1, 2, 3], list(range(10, 20)), [49, 4, 30]):
            row = {cell: payload(cell, version, length + cell % 2) for cell in cells}
            put(heap, list(row), list(row.values()))
            model.update(row)
            expect_holds(heap, model, f"after committing cells {cells} with {length} bytes")


@HEAP_RULES.rule("large-payloads", "Payloads of several MiB are stored as small ones are, to the last byte.")
def large_payloads(subject: HeapSubject) -> None:
    sizes = [part + extra for part in (1 << 16, 1 << 18, 1 << 20, 3 << 20) for extra in (-1, 0, 1)]
    heap = subject.with_room(len(sizes), 1 << 25)
    model: dict[int, bytes] = {}
    for version in range(2):
        for cells in ([0, 4, 8], [9], [3, 1, 2], [11, 5], [6, 7, 10]):
            row = {cell: payload(cell, version, sizes[cell - version]) for cell in cells}
            put(heap, list(row), list(row.values()))
            model.update(row)
        expect_holds(heap, model, f"after writing sizes up to {max(sizes)} bytes, time {version + 1}")


@HEAP_RULES.rule("nbytes", "nbytes counts the room for payloads, unless payloads_in_memory says that it is elsewhere.")
def counts_memory(subject: HeapSubject) -> None:
    heap = subject.with_room(20, 1 << 22)
    for cell in range(20):
        put(heap, [cell], [payload(cell, 0, 100_000)])
    inside = heap.payloads_in_memory if isinstance(heap, FileHeap) else True
    expect(isinstance(inside, bool), f"payloads_in_memory is {inside!r}")
    found = f"nbytes is {heap.nbytes}, the capacity {heap.capacity}, and payloads_in_memory {inside}"
    expect(heap.nbytes >= heap.capacity if inside else 0 < heap.nbytes < heap.capacity, found)


@HEAP_RULES.rule(
    "reservation", "A reservation has the size that was asked for and changes nothing until it is committed."
)
def reservation(subject: HeapSubject) -> None:
    heap = subject.create(10)
    put(heap, [1, 2], [b"one", b"two"])
    for nbytes in (0, 1, 1000):
        room = heap.reserve(np.array([1, 5]), nbytes)
        expect(room.shape == (nbytes,) and room.dtype == np.uint8, f"asked for {nbytes} bytes, got {room.shape}")
        room[:] = 0xFF
        expect_holds(heap, {1: b"one", 2: b"two"}, "while a reservation is open")
    heap.reserve(np.array([7]), 10)[:4] = np.frombuffer(b"four", np.uint8)
    heap.commit(np.array([4]))
    expect_holds(heap, {1: b"one", 2: b"two", 7: b"four"}, "after a later reservation was committed")
    heap.reserve(np.empty(0, np.int64), 0)
    heap.commit(np.empty(0, np.int64))
    expect_holds(heap, {1: b"one", 2: b"two", 7: b"four"}, "after an empty row")


@HEAP_RULES.rule("addresses", "Addresses lead to the bytes that views show, for repeated cells and in any order.")
def addresses(subject: HeapSubject) -> None:
    heap = subject.create(60)
    for cell in range(60):
        put(heap, [cell], [payload(cell, 0, 9_000 + cell)])
    starts, lengths = heap.locate(np.array([59, 0, 7, 7, 30, 59]))
    for start, length, address in zip(starts.tolist(), lengths.tolist(), heap.addresses(starts, lengths).tolist()):
        expect(ctypes.string_at(address, length) == bytes(heap.view(start, length)), f"position {start} differs")
    none = np.empty(0, np.int64)
    expect(len(heap.addresses(none, none)) == 0, "no positions have addresses")


@HEAP_RULES.rule(
    "random-workload", "After any mix of rows, orders and sizes the heap holds what a dictionary would hold."
)
def random_workload(subject: HeapSubject) -> None:
    random = np.random.default_rng(0)
    heap = subject.create(80)
    model: dict[int, bytes] = {}
    for step in range(1500):
        if step % 500 == 250:
            heap.clear()
            model.clear()
        if random.random() < 0.5:
            cells = random.permutation(80)[: random.integers(1, 9)].tolist()
        else:
            cells = [(step + offset) % 80 for offset in range(4)]
        longest = int(random.choice([4, 300, 9_000]))
        row = {cell: payload(cell, step, int(random.integers(1, longest))) for cell in cells}
        put(heap, list(row), list(row.values()))
        model.update(row)
        if step % 50 == 0 or step > 1450:
            expect_holds(heap, model, f"after step {step}")
    expect(heap.evicted.cells == 0, f"{heap.evicted} although everything fitted")


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
    if subject.is_limited:
        for capacity in (0, -1, True, "1GB"):
            expect_raises(ParameterError, f"a capacity of {capacity!r}", subject.create, capacity=capacity)
