"""Rules for heaps about long use, copies and processes."""

from __future__ import annotations

import copy
import gc
import inspect
import itertools
import pickle
import sys
from collections.abc import Callable
from dis import opname
from functools import partial
from types import FrameType
from typing import Any

import numpy as np

from sb3_extra_buffers.heaps import DirectHeap, Evictions, MovingHeap
from sb3_extra_buffers.testing.content import expect_steady_memory
from sb3_extra_buffers.testing.heap_capabilities import expect_same_order
from sb3_extra_buffers.testing.heap_subject import (
    HEAP_RULES,
    HeapSubject,
    absent,
    expect_holds,
    fill,
    held,
    payload,
    put,
)
from sb3_extra_buffers.testing.processes import in_forked_child
from sb3_extra_buffers.testing.rule import NotApplicable, expect

_SLACK = 1 << 20


@HEAP_RULES.rule("steady-state", "Overwriting cells in order, as a replay buffer does, does not change the capacity.")
def steady_state(subject: HeapSubject) -> None:
    heap = subject.create(2000)
    sizes = []
    for lap in range(6):
        for cell in range(0, 2000, 4):
            put(heap, list(range(cell, cell + 4)), [payload(cell + part, lap, 100) * 4 for part in range(4)])
        sizes.append(heap.capacity)
    expect(max(sizes[1:]) == min(sizes[1:]), f"the capacity after each lap: {sizes}")
    expect(heap.nbytes > 0, f"nbytes says {heap.nbytes}")


@HEAP_RULES.rule("holes-closed", "Cells overwritten in any order keep the capacity within a few times the live bytes.")
def holes_closed(subject: HeapSubject) -> None:
    if subject.is_limited:
        raise NotApplicable("the heap has a fixed capacity")
    random = np.random.default_rng(2)
    heap = subject.create(200)
    model: dict[int, bytes] = {}
    for step in range(8000):
        # Every 100th write is to a cell of its own, which then stays: no memory ever empties by itself.
        cell = step // 100 if step % 100 == 0 else int(random.integers(100, 200))
        model[cell] = payload(cell, step % 50, 1000 + step % 13)
        put(heap, [cell], [model[cell]])
    expect_holds(heap, model, "after 8000 writes")
    expect(heap.capacity <= 4 * heap.live + _SLACK, f"the capacity is {heap.capacity} for {heap.live} live bytes")


@HEAP_RULES.rule("moves-counted", "A heap that counts its moves counts whenever a payload that stays is elsewhere.")
def moves_counted(subject: HeapSubject) -> None:
    random, heap = np.random.default_rng(3), subject.create(200)

    moving = heap if isinstance(heap, MovingHeap) else None

    def moves() -> int | None:
        return moving.moves if moving is not None else None

    if moves() is None:
        raise absent("moves")
    known: dict[int, int] = {}
    for step in range(4000):
        cell, before = (step // 50 if step % 50 == 0 else int(random.integers(80, 200))), (moves(), heap.evicted)
        put(heap, [cell], [payload(cell, step % 50, 1000 + step % 13)])
        if (moves(), heap.evicted) != before:
            known.clear()
        cells = np.array(sorted({*known, cell}))
        now = dict(zip(cells.tolist(), heap.addresses(*heap.locate(cells)).tolist()))
        moved = [other for other in known if other != cell and known[other] != now[other]]
        expect(not moved, f"cells {moved[:3]} are elsewhere after writing cell {cell}, and moves says {moves()}")
        known = now


@HEAP_RULES.rule("heap-leaks", "Cells rewritten for long leave nbytes and the memory of the process as they are.")
def heap_leaks(subject: HeapSubject) -> None:
    heap, content = subject.create(20), payload(0, 0, 1 << 14)
    sizes = []

    def work() -> None:
        for cell in range(20):
            put(heap, [cell], [content])
        sizes.append(heap.nbytes)

    expect_steady_memory("rewriting cells", work, 20 << 14, 16)
    late = sizes[len(sizes) // 2 :]
    expect(max(late) - min(late) <= _SLACK, f"nbytes went from {min(late)} to {max(late)}")


def _does_nothing(frame: FrameType) -> bool:
    """Whether a frame is at a line such as ``try:``, where nothing can be raised.

    Python leaves such lines out of the ``with`` around them: what a tracer raises there would keep a lock locked.
    """
    return opname[frame.f_code.co_code[frame.f_lasti]] == "NOP"


def _interrupted(call: Callable[[], object], kind: type[BaseException], tried: set[object]) -> bool:
    """Raise an exception at the first line of a call, or of what it calls, that is not among those that were tried.

    :return: whether there was such a line
    """
    before, count = sys.gettrace(), len(tried)

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        place = frame.f_code, frame.f_lineno, event
        # Not in generators: Python ignores exceptions while it closes one.
        is_line = event in ("line", "return") and not frame.f_code.co_flags & inspect.CO_GENERATOR
        if is_line and place not in tried and not _does_nothing(frame):
            tried.add(place)
            raise kind("raised by the conformance kit")  # which also ends the tracing
        return trace

    # Finalizers of other objects must not run meanwhile: what is raised in them is lost.
    gc.collect(0)
    gc.disable()
    sys.settrace(trace)
    try:
        call()
    except (KeyboardInterrupt, MemoryError):
        if len(tried) == count:
            raise
    finally:
        sys.settrace(before)
        gc.enable()
    return len(tried) > count


@HEAP_RULES.rule(
    "interrupts", "A write or clear() that is interrupted at any line is complete, or its cells are as before or empty."
)
def interrupts(subject: HeapSubject) -> None:
    size, evicts = 400 if subject.is_limited else 6000, subject.evicts
    heap = subject.with_room(12, 3100 if evicts else 1 << 24)
    model, row_of, lost = dict[int, bytes](), dict[int, int](), [0, 0, 0]
    attempts = itertools.count()

    def judge(row: dict[int, bytes], what: str) -> None:
        """Compare with the model what was there before, the row, and the counts."""
        found, number = held(heap), next(attempts)
        if all(found.get(cell) == content for cell, content in row.items()):
            model.update(row)
            row_of.update(dict.fromkeys(row, number))
        gone = model.keys() - found.keys()
        evicted = gone - row.keys()
        expect(evicts or not evicted, f"{what}: cells {sorted(evicted)} are gone")
        lost[0] += len({row_of[cell] for cell in evicted})
        lost[1] += len(evicted)
        lost[2] += sum(len(model[cell]) for cell in evicted)
        for cell in gone:
            del model[cell]
        expect_holds(heap, model, what)
        expect(heap.evicted == Evictions(*lost), f"{what}: {heap.evicted}, expected {Evictions(*lost)}")

    for cells in ([0, 1, 2], [3], [4, 5, 6, 7], [0], [8, 3, 0], [7], [11, 1, 2]):
        for kind in (KeyboardInterrupt, MemoryError):
            tried, is_over = set[object](), False
            while not is_over:
                row = {cell: payload(cell, len(tried), size + 16 * cell) for cell in cells}
                write = partial(put, heap, cells, list(row.values()))
                if isinstance(heap, DirectHeap) and len(cells) == 1:
                    write = partial(heap.put, cells[0], [np.frombuffer(row[cells[0]], np.uint8)], len(row[cells[0]]))
                is_over = not _interrupted(write, kind, tried)
                judge(row, f"{kind.__name__} at line {len(tried)} of writing cells {cells}")
    expect(subject.is_limited or heap.capacity <= 4 * heap.live + _SLACK, f"the capacity has become {heap.capacity}")
    tried, is_over, evicted = set(), False, heap.evicted
    while not is_over:
        is_over = not _interrupted(heap.clear, KeyboardInterrupt, tried)
        if is_over or not held(heap):
            model, evicted = {}, Evictions()
        what = f"KeyboardInterrupt at line {len(tried)} of clear()"
        expect_holds(heap, model, what)
        expect(heap.evicted == evicted, f"{what}: {heap.evicted}, expected {evicted}")
        if not is_over and not model:
            model = {0: payload(0, len(tried), size)}
            put(heap, [0], [model[0]])


@HEAP_RULES.rule("clear", "A cleared heap is as good as new.")
def clear(subject: HeapSubject) -> None:
    heap = subject.create(20)
    for lap, length in enumerate((5000, 30, 300_000, 5000)):  # each lap finds memory of another size
        for cell in range(0, 20, 1 if length < 100_000 else 10):
            put(heap, [cell], [payload(cell, lap, length)])
        heap.reserve(np.array([3]), 10)
        heap.clear()
        expect_holds(heap, {}, "after clear()")
        expect(heap.evicted == Evictions(), f"after clear(): {heap.evicted}")
    put(heap, [7], [b"seven"])
    expect_holds(heap, {7: b"seven"}, "after clear() and one row")


@HEAP_RULES.rule("pickle", "A heap pickles and copies; the copy has the same payloads and is independent.")
def pickling(subject: HeapSubject) -> None:
    heap = subject.with_room(30, 1 << 20)
    for cell in range(0, 28, 2):
        put(heap, [cell, cell + 1], [payload(cell, 0, 200 + cell), payload(cell + 1, 0, 1)])
    put(heap, [4], [payload(4, 1, 77)])
    before = held(heap)
    for name, twin in (("pickled", pickle.loads(pickle.dumps(heap))), ("deep-copied", copy.deepcopy(heap))):
        expect_holds(twin, before, f"the {name} heap")
        put(twin, [29, 0], [b"new", b"newer"])
        expect_holds(heap, before, f"the original after writing to the {name} heap")
        expect_holds(twin, {**before, 29: b"new", 0: b"newer"}, f"the {name} heap after writing to it")
    expect_holds(pickle.loads(pickle.dumps(subject.create(5))), {}, "an empty heap, pickled")


@HEAP_RULES.rule("pickle-keeps-order", "A copy of a full heap evicts the same rows next as the original.")
def pickle_keeps_order(subject: HeapSubject) -> None:
    heap = subject.with_room(60, 1000 if subject.evicts else 1 << 16)
    for step in range(30):
        put(heap, [2 * step, 2 * step + 1], [payload(step, 0, 70), payload(step, 1, 30)])
    twin = pickle.loads(pickle.dumps(heap))
    expect(twin.evicted == heap.evicted, f"the copy says {twin.evicted}, the original {heap.evicted}")
    expect_same_order(heap, twin, "the copy")


@HEAP_RULES.rule("fork", "A forked child reads what its parent stored.")
def fork(subject: HeapSubject) -> None:
    heap = subject.create(20)
    model = {cell: payload(cell, 0, 3000) for cell in range(20)}
    fill(heap, model)
    in_forked_child(lambda: expect_holds(heap, model, "in the child"))
    put(heap, [0], [b"after"])
    expect_holds(heap, {**model, 0: b"after"}, "in the parent")
