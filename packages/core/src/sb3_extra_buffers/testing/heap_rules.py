"""Rules for heaps about storing, reading, refusing and evicting."""

from __future__ import annotations

import ctypes

import numpy as np

from sb3_extra_buffers.errors import HeapFullError, HeapStateError, ParameterError
from sb3_extra_buffers.heaps import Evictions, FileHeap, Heap, SizedHeap, StrictHeap
from sb3_extra_buffers.testing.heap_subject import (
    HEAP_RULES,
    HeapSubject,
    absent,
    evicting,
    expect_holds,
    fill,
    having,
    held,
    payload,
    put,
)
from sb3_extra_buffers.testing.rule import NotApplicable, expect, expect_raises


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
    fill(heap, {cell: payload(cell, 0, 100_000) for cell in range(20)})
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
    fill(heap, {cell: payload(cell, 0, 9_000 + cell) for cell in range(60)})
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
        cells = [(step + offset) % 80 for offset in range(4)]
        if random.random() < 0.5:
            cells = random.permutation(80)[: random.integers(1, 9)].tolist()
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
    inside = [(start, length) for length in (-5, 0, 17, 1 << 40, (1 << 63) - 1)]
    outside = [(-1, 1), (-1, 0), ((1 << 63) - 5, 99), (1 << 62, 5), (-(1 << 40), 5)]
    for position, length in inside + outside:
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


# A capacity is filled to the last byte with sizes that are multiples of 16: a heap may align its payloads.


@HEAP_RULES.rule("evicts-oldest", "A full heap drops its oldest rows, whole, no more than it must, and counts them.")
def evicts_oldest(subject: HeapSubject) -> None:
    heap = evicting(subject, 300, 1120)
    rows: list[dict[int, bytes]] = []
    for number in range(100):  # 32 + 32 + 48 bytes a row, so ten rows fill the capacity exactly
        row = {3 * number + part: payload(number, part, 32 + 16 * (part == 2)) for part in range(3)}
        put(heap, list(row), list(row.values()))
        rows.append(row)
        first = min(row for row, cells in enumerate(rows) if 3 * row in held(heap))
        expect_holds(heap, {cell: data for row in rows[first:] for cell, data in row.items()}, f"after row {number}")
        # Payloads are contiguous, so up to one of them may be lost to the end of the memory at each lap.
        expect(number - first + 1 >= min(9, number + 1), f"after row {number} only rows from {first} on are left")
        expected = Evictions(first, 3 * first, 112 * first)
        expect(heap.evicted == expected, f"after row {number}: {heap.evicted}, expected {expected}")
    heap.clear()
    expect(heap.evicted == Evictions(), f"after clear(): {heap.evicted}")


@HEAP_RULES.rule("replacing-is-not-evicting", "Overwriting cells in order replaces payloads and counts no evictions.")
def replacing_is_not_evicting(subject: HeapSubject) -> None:
    heap = evicting(subject, 10, 10 * 128 + 128)
    for step in range(200):
        put(heap, [step % 10], [payload(step % 10, step, 128)])
    expect(heap.evicted == Evictions(), f"{heap.evicted} although every cell fitted")
    expect_holds(heap, {step % 10: payload(step % 10, step, 128) for step in range(190, 200)}, "after 20 laps")


@HEAP_RULES.rule("too-large", "A row larger than the capacity raises HeapFullError and changes nothing.")
def too_large(subject: HeapSubject) -> None:
    heap = evicting(subject, 10, 1024)
    put(heap, [0, 1], [b"a" * 300, b"b" * 300])
    before = held(heap)
    expect_raises(HeapFullError, "a row of 1025 bytes", put, heap, [2, 1], [b"c" * 512, b"d" * 513])
    expect_holds(heap, before, "after refusing a row")
    put(heap, [2], [b"e" * 1024])
    expect_holds(heap, {2: b"e" * 1024}, "after a row as large as the capacity")


@HEAP_RULES.rule("stale-position", "A position that was evicted since it was located is refused.")
def stale_position(subject: HeapSubject) -> None:
    heap = evicting(subject, 50, 1000)
    put(heap, [0], [payload(0, 0, 400)])
    starts, lengths = heap.locate(np.array([0]))
    fill(heap, {cell: payload(cell, 0, 400) for cell in range(1, 8)})
    expect_raises(HeapStateError, "viewing an evicted payload", heap.view, int(starts[0]), int(lengths[0]))
    expect_raises(HeapStateError, "addressing an evicted payload", heap.addresses, starts, lengths)


@HEAP_RULES.rule(
    "evicting-workload", "Under any mix of orders and sizes a full heap holds a newest part of what was written."
)
def evicting_workload(subject: HeapSubject) -> None:
    random = np.random.default_rng(1)
    heap = evicting(subject, 60, 7919)
    written: dict[int, bytes] = {}
    age: dict[int, int] = {}
    for step in range(3000):
        cells = random.permutation(60)[: random.integers(1, 6)].tolist()
        row = {cell: payload(cell, step, int(random.integers(1, 700))) for cell in cells}
        put(heap, list(row), list(row.values()))
        written.update(row)
        age.update(dict.fromkeys(row, step))
        found = held(heap)
        wrong = [cell for cell in found if found[cell] != written[cell]]
        expect(not wrong, f"after step {step} cells {wrong} hold other bytes")
        expect(heap.live == sum(map(len, found.values())), f"after step {step} live says {heap.live}")
        gone = [age[cell] for cell in written if cell not in found]
        kept = [age[cell] for cell in found]
        expect(not gone or max(gone) < min(kept), f"after step {step} a newer row is gone and an older one is there")


@HEAP_RULES.rule("eviction-counts", "Dropped rows, cells and bytes are counted exactly; replaced ones are not.")
def eviction_counts(subject: HeapSubject) -> None:
    random = np.random.default_rng(4)
    heap = evicting(subject, 40, 4096)
    row_of: dict[int, int] = {}
    lost = [0, 0, 0]
    for step in range(600):
        before = held(heap)
        cells = random.permutation(40)[: random.integers(1, 6)].tolist()
        put(heap, cells, [payload(cell, step, 16 * int(random.integers(1, 25))) for cell in cells])
        gone = before.keys() - held(heap).keys() - set(cells)
        lost[0] += len({row_of[cell] for cell in gone})
        lost[1] += len(gone)
        lost[2] += sum(len(before[cell]) for cell in gone)
        row_of.update(dict.fromkeys(cells, step))
        expect(heap.evicted == Evictions(*lost), f"after step {step}: {heap.evicted}, expected {Evictions(*lost)}")


def _refusal(heap: Heap, cells: list[int], lengths: list[int]) -> HeapFullError | None:
    """The error of a row that does not fit; ``None`` if it fits."""
    try:
        put(heap, cells, [bytes(length) for length in lengths])
    except HeapFullError as error:
        return error
    return None


@HEAP_RULES.rule("never-fits", "HeapFullError has never_fits exactly if an empty heap would refuse the row, too.")
def never_fits(subject: HeapSubject) -> None:
    if not subject.is_limited:
        raise NotApplicable("the heap has no fixed capacity")
    heap = subject.create(10, capacity=1024)
    for lengths in ([1040], [512, 528], [2048], [1024], [512, 512]):
        error, fits = _refusal(heap, list(range(len(lengths))), lengths), sum(lengths) <= 1024
        expect((error is None) == fits, f"payloads of {lengths} bytes in a new heap: {error!r}")
        expect(error is None or error.never_fits, f"payloads of {lengths} bytes: never_fits is not set")
        heap.clear()


@HEAP_RULES.rule("refuse-too-large", "refuse_too_large raises for exactly the rows that never fit; nothing changes.")
def refuses_too_large(subject: HeapSubject) -> None:
    heap = having(subject, SizedHeap, "refuse_too_large", 10, 1024)
    put(heap, [7], [b"seven"])
    for lengths in ([1], [1024], [512, 512], [1040], [512, 528], [1 << 40]):
        large = subject.is_limited and sum(lengths) > 1024
        try:
            heap.refuse_too_large(lengths)
            expect(not large, f"payloads of {lengths} bytes were not refused")
        except HeapFullError as error:
            expect(large and error.never_fits, f"payloads of {lengths} bytes: {error!r}")
        expect_holds(heap, {7: b"seven"}, f"after asking for payloads of {lengths} bytes")


@HEAP_RULES.rule("refuses-when-full", "With refuses_when_full, a row without room is refused and nothing changes.")
def refuses_when_full(subject: HeapSubject) -> None:
    heap = subject.with_room(10, 1024)
    if not isinstance(heap, StrictHeap) or not heap.refuses_when_full:
        raise absent("refuses_when_full")
    model = {cell: payload(cell, 0, 240) for cell in range(4)}
    fill(heap, model)
    for cells, length in (([4], 240), ([5, 6], 128), ([7], 1024)):
        error = _refusal(heap, cells, [length] * len(cells))
        expect(error is not None and not error.never_fits, f"cells {cells} of {length} bytes in a full heap: {error!r}")
        expect_holds(heap, model, f"after refusing cells {cells}")
    expect(heap.evicted == Evictions(), f"{heap.evicted} although rows are refused")
    heap.clear()
    put(heap, [4], [b"x" * 1024])
    expect_holds(heap, {4: b"x" * 1024}, "after clear()")
