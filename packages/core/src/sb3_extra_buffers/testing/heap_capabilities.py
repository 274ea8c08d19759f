"""Rules for heaps about declarations and optional capabilities: saving, writing single cells, fetching."""

from __future__ import annotations

import ctypes
import json
from typing import Any

import numpy as np

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.heaps import (
    HEAP_PROTOCOL,
    DirectHeap,
    Evictions,
    FileHeap,
    Heap,
    Piece,
    RemoteHeap,
    State,
    StateError,
    StatefulHeap,
)
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
from sb3_extra_buffers.testing.rule import NotApplicable, expect, expect_raises


@HEAP_RULES.rule("declarations", "What the plugin declares fits together and is true of the heap.")
def declarations(subject: HeapSubject) -> None:
    plugin, heap = subject.plugin, subject.create(10)
    expect(plugin.protocol == HEAP_PROTOCOL, f"it was written for protocol {plugin.protocol}")
    expect(plugin.summary.strip(), "its summary is empty")
    expect(isinstance(heap, Heap), f"{type(heap).__name__} lacks a part of the Heap protocol")
    known = {*plugin.required, *plugin.parameters}
    expect(set(plugin.local) <= known, f"local names {plugin.local}, the parameters are {sorted(known)}")
    expect(not plugin.fits_worst_case or "capacity" in known, "fits_worst_case, but capacity is no parameter")
    expect(plugin.grows or "capacity" in known, "it neither grows nor has a parameter capacity")
    expect(not (plugin.grows and "capacity" in known), "grows, but capacity is a parameter")
    elsewhere = isinstance(heap, RemoteHeap) or (isinstance(heap, FileHeap) and not heap.payloads_in_memory)
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
    heap = subject.with_room(40, 1 << 23)
    if not isinstance(heap, DirectHeap):
        raise absent("put")
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
    heap = subject.with_room(50, 1 << 22)
    if not isinstance(heap, RemoteHeap):
        raise absent("bring")
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
    heap = subject.with_room(cells, nbytes)
    if not isinstance(heap, StatefulHeap):
        raise absent("state and restore")
    return heap


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
    room = 1000 if subject.evicts else 1 << 16
    heap = _stateful(subject, 60, room)
    for step in range(30):
        put(heap, [2 * step, 2 * step + 1], [payload(step, 0, 70), payload(step, 1, 30)])
    twin = _stateful(subject, 60, room)
    twin.restore(_saved(heap, {}))
    expect_same_order(heap, twin, "the restored heap")


def expect_same_order(heap: Heap, twin: Heap, what: str) -> None:
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
    for cell in range(10):
        put(heap, [cell], [payload(cell, 0, 100)])
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
