"""Rules for heaps with a fixed capacity.

Where it is filled to the last byte, sizes are multiples of 16: a heap may align its payloads.
"""

from __future__ import annotations

import numpy as np

from sb3_extra_buffers.errors import HeapFullError, HeapStateError
from sb3_extra_buffers.heaps import Evictions, Heap, SizedHeap, StrictHeap
from sb3_extra_buffers.testing.heap_subject import (
    HEAP_RULES,
    HeapSubject,
    absent,
    expect_holds,
    held,
    must_evict,
    payload,
    put,
)
from sb3_extra_buffers.testing.rule import NotApplicable, expect, expect_raises


@HEAP_RULES.rule("evicts-oldest", "A full heap drops its oldest rows, whole, no more than it must, and counts them.")
def evicts_oldest(subject: HeapSubject) -> None:
    must_evict(subject)
    heap = subject.create(300, capacity=1120)
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
    must_evict(subject)
    heap = subject.create(10, capacity=10 * 128 + 128)
    for step in range(200):
        put(heap, [step % 10], [payload(step % 10, step, 128)])
    expect(heap.evicted == Evictions(), f"{heap.evicted} although every cell fitted")
    expect_holds(heap, {step % 10: payload(step % 10, step, 128) for step in range(190, 200)}, "after 20 laps")


@HEAP_RULES.rule("too-large", "A row larger than the capacity raises HeapFullError and changes nothing.")
def too_large(subject: HeapSubject) -> None:
    must_evict(subject)
    heap = subject.create(10, capacity=1024)
    put(heap, [0, 1], [b"a" * 300, b"b" * 300])
    before = held(heap)
    expect_raises(HeapFullError, "a row of 1025 bytes", put, heap, [2, 1], [b"c" * 512, b"d" * 513])
    expect_holds(heap, before, "after refusing a row")
    put(heap, [2], [b"e" * 1024])
    expect_holds(heap, {2: b"e" * 1024}, "after a row as large as the capacity")


@HEAP_RULES.rule("stale-position", "A position that was evicted since it was located is refused.")
def stale_position(subject: HeapSubject) -> None:
    must_evict(subject)
    heap = subject.create(50, capacity=1000)
    put(heap, [0], [payload(0, 0, 400)])
    starts, lengths = heap.locate(np.array([0]))
    for cell in range(1, 8):
        put(heap, [cell], [payload(cell, 0, 400)])
    expect_raises(HeapStateError, "viewing an evicted payload", heap.view, int(starts[0]), int(lengths[0]))
    expect_raises(HeapStateError, "addressing an evicted payload", heap.addresses, starts, lengths)


@HEAP_RULES.rule(
    "evicting-workload", "Under any mix of orders and sizes a full heap holds a newest part of what was written."
)
def evicting_workload(subject: HeapSubject) -> None:
    must_evict(subject)
    random = np.random.default_rng(1)
    heap = subject.create(60, capacity=7919)
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
    must_evict(subject)
    random = np.random.default_rng(4)
    heap = subject.create(40, capacity=4096)
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
    heap = subject.with_room(10, 1024)
    if not isinstance(heap, SizedHeap):
        raise absent("refuse_too_large")
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
    model: dict[int, bytes] = {}
    for cell in range(4):
        model[cell] = payload(cell, 0, 240)
        put(heap, [cell], [model[cell]])
    for cells, length in (([4], 240), ([5, 6], 128), ([7], 1024)):
        error = _refusal(heap, cells, [length] * len(cells))
        expect(error is not None and not error.never_fits, f"cells {cells} of {length} bytes in a full heap: {error!r}")
        expect_holds(heap, model, f"after refusing cells {cells}")
    expect(heap.evicted == Evictions(), f"{heap.evicted} although rows are refused")
    heap.clear()
    put(heap, [4], [b"x" * 1024])
    expect_holds(heap, {4: b"x" * 1024}, "after clear()")
