"""An interrupt at any line of a write damages no other cell, and the write can be repeated."""

import copy
import sys
from pathlib import Path

import numpy as np
import pytest

from sb3_extra_buffers import frames, stores
from sb3_extra_buffers.codecs import CellSpec, CodecSpec, bind
from sb3_extra_buffers.frames import FrameGeometry, Streams
from sb3_extra_buffers.heaps import create
from sb3_extra_buffers.stores import (
    CellStore,
    DeferredStore,
    FrameRequest,
    PairStore,
    Place,
    RawStore,
    RewrittenStore,
    SharedStore,
    StoreRequest,
    auto,
    build_stores,
)
from sb3_extra_buffers.stores.auto import Role
from sb3_extra_buffers.stores.chunks import ChunkStore
from sb3_extra_buffers.stores.frames import FrameStore, slots_for
from sb3_extra_buffers.stores.sparse import SparseStore

FOLDER = str(Path(stores.__file__).parent)
FOLDERS = FOLDER, str(Path(frames.__file__).parent)
ERRORS = [KeyboardInterrupt, MemoryError]
CELLS, ENVS, NBYTES = 12, 2, 24
CODEC = bind("rle", CellSpec(np.uint8, NBYTES))


@pytest.fixture(autouse=True)
def one_codec(monkeypatch):
    """The automatic choice tries one codec: a few hundred lines instead of thousands."""
    monkeypatch.setattr(auto, "names", lambda: ("gzip",))


def interrupted(call, line, error=KeyboardInterrupt):
    """Call a function and interrupt it at a line of ``stores`` or ``frames``; return whether it got there."""

    def trace(frame, event, _):
        nonlocal line
        if not frame.f_code.co_filename.startswith(FOLDERS):
            return None
        if event == "line":
            line -= 1
            if line < 0:
                raise error
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except error:
        return True
    finally:
        sys.settrace(before)
    return False


class ChooseLate:
    """Chooses a store at the third write."""

    def choose(self, held, write):
        return None if len(held) < 2 else cells_of(batch=5)

    def forget(self):
        pass


class Sparse:
    """Cells of a sparse store as cells of an observation store, which are freed before each second write."""

    def __init__(self, store):
        self.sparse, self.row_nbytes = SparseStore(store), store.row_nbytes

    def write(self, cells, obs, next_obs=None):
        if cells[0] % 4 == 0:
            self.sparse.free(cells)
        self.sparse.write(cells, obs)

    def read(self, cells, out, next_out=None):
        out[:] = 0
        self.sparse.read(cells, out)


#: A heap with room for everything, one that evicts, and one in a file.
HEAPS = {"memory": {}, "ring": {"capacity": 7 * NBYTES}, "mmap": {"capacity": 7 * NBYTES}}


def cells_of(batch=0, first=0, heap="memory"):
    own = create(heap, 2 * CELLS, **HEAPS[heap]) if isinstance(heap, str) else heap
    return CellStore(CODEC, own, first, CELLS, batch=batch)


def pair(batch=0, heap="memory"):
    own = create(heap, 2 * CELLS, **HEAPS[heap])
    return cells_of(batch, 0, own), cells_of(0, CELLS, own)


def raw():
    return RawStore(CELLS, NBYTES)


def requested(*, codec=None, shape=(NBYTES * 20,), **options):
    request = StoreRequest("x", shape, np.dtype(np.uint8), CELLS, ENVS, codec, **options)
    return build_stores([request], Place())[0][0]


IMAGES = FrameRequest("x", (3, 20, 20), np.dtype(np.uint8), CELLS, ENVS, has_next=True, is_automatic=True)


class Images:
    """A store of frames, with a way to copy it."""

    def __init__(self, heap=None):
        (self.store,), self.heap = build_stores([IMAGES], Place(), heap)
        self.row_nbytes, self.write, self.read = self.store.row_nbytes, self.store.write, self.store.read

    def __deepcopy__(self, memo):
        twin = Images(copy.deepcopy(self.heap, memo))
        twin.store.restore(self.store.state())
        return twin


#: For each kind of store: how to make it, and whether it has next observations.
KINDS = {
    "raw": (raw, False),
    "cells": (cells_of, False),
    "cells in batches": (lambda: cells_of(batch=5), False),
    "sparse": (lambda: Sparse(raw()), False),
    "sparse on cells": (lambda: Sparse(cells_of()), False),
    "rewritten": (lambda: RewrittenStore(cells_of()), False),
    "shared": (lambda: SharedStore(*pair(), ENVS), True),
    "shared in batches": (lambda: SharedStore(*pair(5), ENVS), True),
    "shared and raw": (lambda: SharedStore(raw(), raw(), ENVS), True),
    "pair": (lambda: PairStore(*pair()), True),
    "pair in batches": (lambda: PairStore(*pair(5)), True),
    "deferred": (lambda: DeferredStore(CELLS, NBYTES, ChooseLate()), False),
    "deferred codec": (lambda: requested(), False),
    "deferred codec, shared": (lambda: requested(has_next=True), True),
    "deferred codec, rewritten": (lambda: requested(is_rewritten=True), False),
    "requested codec, pair": (lambda: requested(codec=CodecSpec("rle"), shape=(NBYTES,), has_next=True), True),
    "deferred frames": (Images, True),
}
for place in ("ring", "mmap"):
    KINDS[f"cells, {place} that evicts"] = (lambda place=place: cells_of(heap=place), False)
    KINDS[f"shared, {place} that evicts"] = (
        lambda place=place: SharedStore(*pair(heap=place), ENVS, is_bounded=True),
        True,
    )


def steps_of(nbytes, count):
    """Steps as a buffer writes them: cells, observations and next observations. Some episodes end."""
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 4, (ENVS, 3, nbytes // 3), np.uint8)
    for step in range(count):
        before = frames.reshape(ENVS, -1).copy()
        frames = np.concatenate([frames[:, 1:], rng.integers(0, 4, (ENVS, 1, nbytes // 3), np.uint8)], axis=1)
        after = frames.reshape(ENVS, -1).copy()
        yield np.arange(ENVS) + ENVS * (step % (CELLS // ENVS)), before, after
        ended = rng.random(ENVS) < 0.25
        frames[ended] = rng.integers(0, 4, frames[ended].shape, np.uint8)


class Checked:
    """A store beside plain arrays."""

    def __init__(self, store, has_next, *, evicts=False):
        self.store, self.has_next = store, has_next
        self.plain = np.zeros((1 + has_next, CELLS, store.row_nbytes), np.uint8)
        self.evicts = evicts

    def call(self, cells, obs, next_obs):
        if self.has_next:
            self.store.write(cells, obs, next_obs)
        else:
            self.store.write(cells, obs)

    def write(self, cells, obs, next_obs):
        self.call(cells, obs, next_obs)
        self.plain[:, cells] = [obs, next_obs][: 1 + self.has_next]
        assert not self.evicts or self.store.holds(cells).all()

    def wrong(self, cells):
        """Number of rows that are not as they were written; on a heap that evicts, of those that are held."""
        if self.evicts:
            cells = cells[self.store.holds(cells)]
        found = np.full((1 + self.has_next, len(cells), self.store.row_nbytes), 99, np.uint8)
        self.store.read(cells, *found)
        return int((found != self.plain[:, cells]).any(axis=2).sum())


# Two of the four combinations: which error it was does not matter to what is written again.
@pytest.mark.parametrize(("again", "error"), [("the same", KeyboardInterrupt), ("other rows", MemoryError)])
@pytest.mark.parametrize("kind", KINDS)
def test_after_an_interrupt_at_any_line_the_write_can_be_repeated(kind, again, error):
    make, has_next = KINDS[kind]
    checked, everything, hits = Checked(make(), has_next, evicts="evicts" in kind), np.arange(CELLS), 0
    steps = [*steps_of(checked.store.row_nbytes, 22)]
    # Overwriting begins after 6 steps; chunks of frames are complete after 14 or fewer.
    chosen = {0, 1, 2, 7, 13, 14, 15, 16} if kind == "deferred frames" else {0, 1, 2, 3, 6, 7}
    for number, (cells, obs, next_obs) in enumerate(steps[: 1 + max(chosen)]):
        line, others = 0, np.setdiff1d(everything, cells)
        while number in chosen:
            twin = copy.deepcopy(checked)
            if not interrupted(lambda: twin.call(cells, obs, next_obs), line, error):  # noqa: B023
                break
            where = f"{kind}, step {number}, line {line}"
            assert twin.wrong(others) == 0, where
            retried = (obs, next_obs) if again == "the same" else (obs ^ 1, next_obs ^ 1)
            twin.write(cells, *retried)
            assert twin.wrong(everything) == 0, where
            for later in steps[number + 1 : number + 3]:
                twin.write(*later)
                assert twin.wrong(everything) == 0, where
            line += 1 if line < 200 else 23  # the automatic choice has more lines, which change nothing
        hits += line
        checked.write(cells, obs, next_obs)
        assert checked.wrong(everything) == 0
    assert hits >= 3 * len(chosen)


#: How chunks are stored, and on which heap: the last two hold about half of the steps.
FRAMES = {
    "patches": (None, None, "memory", {}),
    "codec": (CodecSpec("gzip", {"level": 1}), None, "memory", {}),
    "chosen codec": (Role.PATCHES, None, "memory", {}),
    "codec if large": (None, Role.PATCHES, "memory", {}),
    "ring that evicts": (None, None, "ring", {"capacity": 4000}),
    "codec, ring that evicts": (CodecSpec("rle"), None, "ring", {"capacity": 3000}),
    "mmap that evicts": (None, None, "mmap", {"capacity": 4000}),
}


class FrameSteps:
    """A frame store of two environments beside plain arrays. Scenes stay alike, then change: reference frames come and
    go.
    """

    GEOMETRY, STEPS, CHUNK = FrameGeometry(2, 1, 300), 40, 4

    def __init__(self, how):
        every, fallback, name, parameters = FRAMES[how]
        cells, geometry, kernels = ENVS * self.STEPS, self.GEOMETRY, frames.create()
        slots = slots_for(geometry, self.CHUNK, ENVS, 2 * cells)
        self.heap = create(name, slots, **parameters)
        chunks = ChunkStore(kernels, every, fallback, self.heap, 0, slots, ENVS, geometry.frame_nbytes)
        self.store = FrameStore(Streams(geometry, self.CHUNK, ENVS, cells, slots, 2), chunks, kernels, cells)
        self.plain, self.written = np.zeros((2, cells, 600), np.uint8), np.zeros(cells, bool)

    def step(self, number):
        found = []
        for shown in (number, number + 1):
            scene = np.random.default_rng([0, 1, 2, 2, 3][shown // 12 % 5]).integers(1, 256, (ENVS, 2, 300))
            scene[:, 0, shown % 290 : shown % 290 + 4] = shown % 256
            scene[:, 1, (shown + 1) % 290 : (shown + 1) % 290 + 4] = (shown + 1) % 256
            found.append(scene.astype(np.uint8).reshape(ENVS, -1))
        return ENVS * (number % self.STEPS) + np.arange(ENVS), *found

    def write(self, number):
        cells, obs, next_obs = self.step(number)
        self.store.write(cells, obs, next_obs)
        self.plain[0, cells], self.plain[1, cells] = obs, next_obs
        self.written[cells] = True
        assert self.store.holds(cells).all()

    def held(self, *, without=()):
        """The cells that are held; they are right."""
        cells = np.setdiff1d(np.flatnonzero(self.written), without)
        cells = cells[self.store.holds(cells)]
        out = np.full((2, len(cells), 600), 99, np.uint8)
        self.store.read(cells, *out)
        assert (out == self.plain[:, cells]).all()
        return cells


# The two errors in turn: nothing in the stores tells them apart.
@pytest.mark.parametrize(("how", "error"), [(how, ERRORS[number % 2]) for number, how in enumerate(FRAMES)])
def test_an_interrupt_where_a_chunk_is_complete_costs_no_other_observation(how, error):
    steps, hits = FrameSteps(how), 0
    for number in range(64):
        line, cells = 0, steps.step(number)[0]
        # Where chunks are complete, in the first scenes, at their changes, and after the wrap-around.
        while number in (2, 7, 13, 26, 62):
            twin = copy.deepcopy(steps)
            if not interrupted(lambda: twin.store.write(*twin.step(number)), line, error):  # noqa: B023
                break
            kept = twin.held(without=cells)
            assert twin.heap.evicted.cells or len(kept) == np.setdiff1d(np.flatnonzero(steps.written), cells).size
            for later in range(number, number + (9 if line % 7 == 0 else 2)):
                twin.write(later)
            twin.held()
            assert twin.store.held_before(ENVS * ((later + 1) % steps.STEPS)) >= 2 * ENVS
            line += 1
        hits += line
        steps.write(number)
    assert hits > 100
    assert (steps.heap.evicted.cells > 0) == how.endswith("evicts")
    assert steps.store.chunks.reference_frames.of_slot.any()


@pytest.mark.parametrize(
    ("how", "error"), [("patches", ERRORS[0]), ("codec if large", ERRORS[1]), ("ring that evicts", ERRORS[0])]
)
def test_an_interrupt_of_a_read_changes_nothing_that_is_read_later(how, error):
    steps, line = FrameSteps(how), 0
    for number in range(60):
        steps.write(number)
    held, out = steps.held(), np.empty((2, 2 * ENVS * steps.STEPS, 600), np.uint8)
    while True:
        twin = copy.deepcopy(steps)  # without known addresses
        if not interrupted(lambda: twin.store.read(held, *out[:, : len(held)]), line, error):  # noqa: B023
            break
        assert twin.held().tolist() == held.tolist()
        for number in range(60, 65):
            twin.write(number)
        twin.held()
        line += 1
    assert line > 20


class Noise(FrameSteps):
    """Frames without anything in common, on a ring for two chunks: a step evicts a chunk of its own."""

    def step(self, number):
        found = [np.random.default_rng(shown).integers(1, 256, (ENVS, 600), np.uint8) for shown in (number, number + 1)]
        return ENVS * (number % self.STEPS) + np.arange(ENVS), *found


@pytest.mark.parametrize("error", ERRORS)
def test_an_interrupt_where_a_step_has_evicted_itself_does_not_keep_it_from_being_written_again(error, monkeypatch):
    monkeypatch.setitem(FRAMES, "small ring", (None, None, "ring", {"capacity": 2000}))
    steps, hits, calls = Noise("small ring"), 0, []
    write_again = FrameStore._write_again
    monkeypatch.setattr(FrameStore, "_write_again", lambda *given: calls.append(len(calls)) or write_again(*given))
    for number in range(6):
        before, line = copy.deepcopy(steps), 0
        calls.clear()
        steps.write(number)
        while calls and number % 2:
            twin = copy.deepcopy(before)
            if not interrupted(lambda: twin.store.write(*twin.step(number)), line, error):  # noqa: B023
                break
            for later in range(number, number + 4):  # every other one evicts a chunk of its own
                twin.write(later)
            twin.held()
            line += 1
        hits += line
    assert hits > 100


def test_slots_that_interrupts_lost_are_found_again():
    line, total = 0, 0
    while True:
        store = SparseStore(RawStore(CELLS, NBYTES))
        store.write(np.arange(CELLS), np.zeros((CELLS, NBYTES), np.uint8))
        rows, cells = np.full((4, NBYTES), 7, np.uint8), np.arange(4)

        def free_and_write(store=store, cells=cells, rows=rows):
            store.free(cells)
            store.write(cells, rows)

        was_interrupted = interrupted(free_and_write, line)
        for value in range(20):
            free_and_write(rows=rows + value)
        out = np.full((CELLS, NBYTES), 99, np.uint8)
        store.read(np.arange(CELLS), out)
        assert out[:, 0].tolist() == [26] * 4 + [0] * 8
        assert store.stored_nbytes() == CELLS * NBYTES
        if not was_interrupted:
            break
        line, total = line + 1, total + 1
    assert total >= 10


#: Correct as long as it is not interrupted: another cell is zero for a moment.
CARELESS = """
def write(self, cells, obs, next_obs=None, /):
    other = (cells + len(cells)) % self.cells
    saved = None if self._rows is None else self._rows[other].copy()
    RawStore.write(self, other, 0 * obs)
    RawStore.write(self, cells, obs)
    if saved is not None:
        RawStore.write(self, other, saved)
"""


def test_the_check_finds_a_store_that_an_interrupt_damages(monkeypatch):
    class Careless(RawStore):
        pass

    namespace = {"RawStore": RawStore}
    exec(compile(CARELESS, f"{FOLDER}/careless.py", "exec"), namespace)
    Careless.write = namespace["write"]
    checked = Checked(Careless(CELLS, NBYTES), False)
    for step in steps_of(NBYTES, 10):
        checked.write(*step)
        assert checked.wrong(np.arange(CELLS)) == 0
    monkeypatch.setitem(KINDS, "careless", (lambda: Careless(CELLS, NBYTES), False))
    with pytest.raises(AssertionError, match="line"):
        test_after_an_interrupt_at_any_line_the_write_can_be_repeated("careless", "the same", MemoryError)
