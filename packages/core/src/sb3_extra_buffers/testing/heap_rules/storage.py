"""Rules about what a heap holds."""

from __future__ import annotations

import ctypes

import numpy as np

from sb3_extra_buffers.testing.heap_subject import HEAP_RULES, HeapSubject, expect_holds, payload, put
from sb3_extra_buffers.testing.rule import expect


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
