"""Rules for heaps about declarations, long use, copies, processes and optional capabilities."""

from __future__ import annotations

import copy
import ctypes
import itertools
import json
import pickle
from functools import partial
from typing import Any

import numpy as np

from sb3_extra_buffers import heaps
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.heaps import DirectHeap, Evictions, Heap, Piece, RemoteHeap, State, StateError, StatefulHeap
from sb3_extra_buffers.testing.content import expect_steady_memory
from sb3_extra_buffers.testing.heap_subject import (
    HEAP_RULES,
    HeapSubject,
    absent,
    expect_holds,
    fill,
    having,
    held,
    payload,
    put,
)
from sb3_extra_buffers.testing.interrupts import interrupted
from sb3_extra_buffers.testing.processes import in_forked_child
from sb3_extra_buffers.testing.rule import NotApplicable, expect, expect_raises

_SLACK = 1 << 20


@HEAP_RULES.rule("declarations", "What the plugin declares fits together and is true of the heap.")
def declarations(subject: HeapSubject) -> None:
    plugin, heap = subject.plugin, subject.create(10)
    expect(plugin.protocol == heaps.HEAP_PROTOCOL, f"it was written for protocol {plugin.protocol}")
    expect(plugin.summary.strip(), "its summary is empty")
    expect(isinstance(heap, Heap), f"{type(heap).__name__} lacks a part of the Heap protocol")
    known = {*plugin.required, *plugin.parameters}
    expect(set(plugin.local) <= known, f"local names {plugin.local}, the parameters are {sorted(known)}")
    expect(not plugin.fits_worst_case or "capacity" in known, "fits_worst_case, but capacity is no parameter")
    expect(plugin.grows or "capacity" in known, "it neither grows nor has a parameter capacity")
    expect(not (plugin.grows and "capacity" in known), "grows, but capacity is a parameter")
    elsewhere = isinstance(heap, RemoteHeap) or (isinstance(heap, heaps.FileHeap) and not heap.payloads_in_memory)
    expect(not (plugin.in_memory and elsewhere), "in_memory, but payloads are elsewhere")


@HEAP_RULES.rule("grows", "A heap that declares that it grows takes many times its first capacity and evicts nothing.")
def grows(subject: HeapSubject) -> None:
    if not subject.plugin.grows:
        raise NotApplicable("the plugin does not declare grows")
    heap, model = subject.create(64), {cell: payload(cell, 0, 1 << 18) for cell in range(64)}
    fill(heap, model)
    expect_holds(heap, model, f"after writing {len(model) << 18} bytes")
    expect(heap.evicted == Evictions(), f"{heap.evicted} although the heap grows")


@HEAP_RULES.rule("put", "put stores the payload of a cell as reserve and commit do.")
def direct(subject: HeapSubject) -> None:
    heap = having(subject, DirectHeap, "put", 40, 1 << 23)
    random = np.random.default_rng(5)
    model: dict[int, bytes] = {}
    for step in range(400):
        cell = int(random.integers(40))
        model[cell] = payload(cell, step, int(random.choice([1, 2, 300, 5_000, 70_000])))
        data = np.frombuffer(model[cell], np.uint8)
        cuts = np.sort(random.integers(0, len(data) + 1, random.integers(0, 3)))
        if step % 4:
            heap.put(cell, np.split(data, cuts), len(data))
        else:
            put(heap, [cell], [model[cell]])
        if step % 20 == 0:
            expect_holds(heap, model, f"after step {step}")
    expect(heap.evicted == Evictions(), f"{heap.evicted} although everything fitted")
    for cell in (-1, 40):
        expect_raises(ParameterError, f"putting cell {cell}", heap.put, cell, [np.zeros(3, np.uint8)], 3)
    expect_holds(heap, model, "after refusing wrong cells")


@HEAP_RULES.rule("bring", "bring gives the payloads of a batch where a codec can read them, repeated and in any order.")
def bring(subject: HeapSubject) -> None:
    heap = having(subject, RemoteHeap, "bring", 50, 1 << 22)
    model = {cell: payload(cell, 0, 1 + 700 * cell) for cell in range(45)}
    fill(heap, model)
    for cells in ([3], [44, 0, 44, 7, 7], list(range(44, -1, -1)), []):
        starts, lengths = heap.locate(np.array(cells, np.int64))
        source, places = heap.bring(starts, lengths)
        expect(len(places) == len(cells), f"{len(cells)} payloads have {len(places)} positions")
        addresses = source.addresses(places, lengths).tolist()
        for cell, place, address in zip(cells, places.tolist(), addresses):
            expect(bytes(source.view(place, len(model[cell]))) == model[cell], f"the view of cell {cell} differs")
            expect(ctypes.string_at(address, len(model[cell])) == model[cell], f"cell {cell} differs at its address")
    expect_holds(heap, model, "after fetching")


def _saved(heap: Any, known: dict[str, list[Piece]]) -> State:
    """The state as a checkpoint hands it over: facts by JSON, arrays read-only, logs in the pieces that were saved."""
    state, pieces = heap.state(), {}
    for log in state.logs:
        kept = [piece for piece in known.get(log.key, []) if piece.begin + len(piece.content) > log.begin]
        end = kept[-1].begin + len(kept[-1].content) if kept else log.begin
        if end < log.end:
            kept.append(Piece(end, np.concatenate(log.read(end, log.end))))
        pieces[log.key] = kept
    known.update(pieces)
    arrays = {name: array.copy() for name, array in state.arrays.items()}
    for content in (*arrays.values(), *(piece.content for kept in pieces.values() for piece in kept)):
        content.flags.writeable = False
    return State(json.loads(json.dumps(state.facts)), arrays, [], pieces)


def _stateful(subject: HeapSubject, cells: int, nbytes: int) -> Any:
    return having(subject, StatefulHeap, "state and restore", cells, nbytes)


@HEAP_RULES.rule("state", "A restored heap has the same payloads and counts, and is independent of the original.")
def restores(subject: HeapSubject) -> None:
    random, known = np.random.default_rng(6), dict[str, list[Piece]]()
    room = 4096 if subject.evicts else 1 << 16
    heap = _stateful(subject, 30, room)
    for lap in range(8):
        for step in range(lap * 5):
            cells = random.permutation(30)[: random.integers(1, 4)].tolist()
            put(heap, cells, [payload(cell, step, 16 * int(random.integers(1, 30))) for cell in cells])
        before = held(heap)
        twin = _stateful(subject, 30, room)
        twin.restore(_saved(heap, known))
        expect_holds(twin, before, f"the restored heap, time {lap}")
        expect(twin.evicted == heap.evicted, f"the restored heap says {twin.evicted}, the original {heap.evicted}")
        put(twin, [3, 29], [b"three", b"new"])
        expect({3: b"three", 29: b"new"}.items() <= held(twin).items(), f"writing to the restored heap failed: {lap}")
        expect_holds(heap, before, "the original after writing to the restored heap")
        twin.clear()
        expect_holds(twin, {}, "the restored heap, cleared")


@HEAP_RULES.rule("state-keeps-order", "A restored heap evicts the same rows next as the original.")
def state_keeps_order(subject: HeapSubject) -> None:
    heap, twin = (_stateful(subject, 60, 1000 if subject.evicts else 1 << 16) for _ in range(2))
    for step in range(30):
        put(heap, [2 * step, 2 * step + 1], [payload(step, 0, 70), payload(step, 1, 30)])
    twin.restore(_saved(heap, {}))
    _expect_same_order(heap, twin, "the restored heap")


def _expect_same_order(heap: Heap, twin: Heap, what: str) -> None:
    """Fail unless a copy of a heap with 30 rows of two cells goes on like the original."""
    for step in range(7):
        for one in (heap, twin):
            put(one, [2 * step, 2 * step + 1], [payload(step, 2, 70), payload(step, 3, 30)])
        # A copy may start at the beginning of its memory, and so lose up to one row less to the end of it.
        kept, copied = set(held(heap)), set(held(twin))
        expect(len(kept ^ copied) <= 2, f"the original keeps cells {sorted(kept)}, {what} {sorted(copied)}")


@HEAP_RULES.rule("state-refused", "A state of another number of cells, or one with missing parts, raises StateError.")
def state_refused(subject: HeapSubject) -> None:
    heap = _stateful(subject, 20, 4096)
    fill(heap, {cell: payload(cell, 0, 100) for cell in range(10)})
    state = _saved(heap, {})
    other = _stateful(subject, 21, 4096)
    expect_raises(StateError, "the state of a heap of 20 cells", other.restore, state)
    for name in state.arrays:
        rest = {key: array for key, array in state.arrays.items() if key != name}
        lacking, twin = State(state.facts, rest, [], state.pieces), _stateful(subject, 20, 4096)
        expect_raises(StateError, f"a state without the array {name!r}", twin.restore, lacking)
    if state.pieces:
        twin = _stateful(subject, 20, 4096)
        expect_raises(StateError, "a state without payloads", twin.restore, State(state.facts, state.arrays))
    expect(not held(other), "a heap that refused a state holds something")


@HEAP_RULES.rule("state-logs", "Bytes of a log keep their position and content, so that each is saved once.")
def state_logs(subject: HeapSubject) -> None:
    heap = _stateful(subject, 30, 4096 if subject.evicts else 1 << 20)
    seen: dict[str, tuple[int, bytes]] = {}
    for step in range(200):
        put(heap, [step * 7 % 30], [payload(step, 0, 400 * (1 + step % 9))])
        state = heap.state()
        if not state.logs:
            raise NotApplicable("the state of the heap has no logs")
        for log in state.logs:
            content = b"".join(part.tobytes() for part in log.read(log.begin, log.end))
            expect(len(content) == log.end - log.begin, f"log {log.key} has {len(content)} bytes")
            begin, before = seen.get(log.key, (log.begin, b""))
            low, high = max(begin, log.begin), min(begin + len(before), log.end)
            if low < high:
                same = before[low - begin : high - begin] == content[low - log.begin : high - log.begin]
                expect(same, f"bytes {low} to {high} of log {log.key} changed after they were saved")
            seen[log.key] = log.begin, content


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

    moving = heap if isinstance(heap, heaps.MovingHeap) else None

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
                is_over = not interrupted(write, kind, tried)
                judge(row, f"{kind.__name__} at line {len(tried)} of writing cells {cells}")
    expect(subject.is_limited or heap.capacity <= 4 * heap.live + _SLACK, f"the capacity has become {heap.capacity}")
    tried, is_over, evicted = set(), False, heap.evicted
    while not is_over:
        is_over = not interrupted(heap.clear, KeyboardInterrupt, tried)
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
    _expect_same_order(heap, twin, "the copy")


@HEAP_RULES.rule("fork", "A forked child reads what its parent stored.")
def fork(subject: HeapSubject) -> None:
    heap = subject.create(20)
    model = {cell: payload(cell, 0, 3000) for cell in range(20)}
    fill(heap, model)
    in_forked_child(lambda: expect_holds(heap, model, "in the child"))
    put(heap, [0], [b"after"])
    expect_holds(heap, {**model, 0: b"after"}, "in the parent")
