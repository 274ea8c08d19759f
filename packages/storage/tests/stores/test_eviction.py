"""A heap with a limit evicts chunks: the store knows which cells are left, at a cost that does not grow with them."""

import copy
import pickle
import sys

import numpy as np
import pytest

from sb3_extra_buffers import frames, heaps
from sb3_extra_buffers.errors import HeapFullError, HeapStateError
from sb3_extra_buffers.frames import FrameGeometry, Streams
from sb3_extra_buffers.frames.workbench import play
from sb3_extra_buffers.heaps import TableHeap
from sb3_extra_buffers.heaps.state import StateError
from sb3_extra_buffers.stores.chunks import ChunkStore
from sb3_extra_buffers.stores.frames import FrameStore, slots_for

GEOMETRY = FrameGeometry(4, 1, 60)
CHUNK = 8


class CountdownHeap(TableHeap):
    """Evicts the oldest rows, and gives the newest the lowest positions, so that these do not tell the order."""

    label = "countdown"

    def __init__(self, cells, capacity):
        super().__init__(cells)
        self._capacity, self._rows = capacity, {}

    @property
    def capacity(self):
        return self._capacity

    def view(self, start, length, /):
        return memoryview(self._rows[start])[:length]

    def addresses(self, starts, lengths, /):
        return np.array([self._rows[start].ctypes.data for start in starts.tolist()], np.uint64)

    def _parameters(self):
        return {"capacity": self._capacity}

    def _written(self):
        cells, begins = super()._written()
        return cells[::-1], begins

    def _store(self, cells, payloads, lengths):
        self._forget(cells)
        if sum(lengths) > self._capacity:
            raise HeapFullError(self.label, sum(lengths), self._capacity, "", never_fits=True)
        while self._live + sum(lengths) > self._capacity:
            oldest = self._written()[0][:1].tolist()
            self._evict(oldest, rows=1)
        begin = 0
        for cell, length in zip(cells, lengths):
            start = min(self._rows, default=1 << 40) - 1
            self._rows[start] = np.frombuffer(bytes(payloads[begin : begin + length]), np.uint8)
            self._record([cell], [start], [length])
            begin += length


def room_for(steps, envs, share):
    """Bytes of a heap that has room for a part of so many steps, and for three chunks of frames without a pattern."""
    played = Played(make(steps, envs, 1 << 30), envs)
    played.write(steps)
    return max(int(share * played.store.heap.live), 3 * envs * CHUNK * 70)


def make(steps, envs=1, capacity=0, kernels="numpy", heap=None):
    made, cells = frames.create(kernels), steps * envs
    slots = slots_for(GEOMETRY, CHUNK, envs, 2 * cells)
    heap = heaps.create("ring", slots, capacity=capacity) if heap is None else heap
    chunks = ChunkStore(made, None, None, heap, 0, slots, envs, GEOMETRY.frame_nbytes)
    store = FrameStore(Streams(GEOMETRY, CHUNK, envs, cells, slots, planes=2), chunks, made, cells)
    store.heap = heap
    return store


class Played:
    """A store beside plain arrays. Each step goes to the next cells, as a buffer writes them."""

    def __init__(self, store, envs, seed=0):
        self.store, self.envs, self.step = store, envs, 0
        self.plain = np.zeros((2, store.cells, store.row_nbytes), np.uint8)
        self.written = np.zeros(store.cells, bool)
        self._shown = play(np.random.default_rng(seed), GEOMETRY, envs, 1 << 30)
        self._last = next(self._shown)

    @property
    def first(self):
        return self.step * self.envs % self.store.cells

    def write(self, steps, *, check=False):
        for _ in range(steps):
            following = next(self._shown)
            self.put(self.first + np.arange(self.envs), self._last, following)
            self._last, self.step = following, self.step + 1
            if check:
                self.check()

    def put(self, cells, obs, next_obs):
        self.store.write(cells, obs, next_obs)
        self.plain[0, cells], self.plain[1, cells] = obs, next_obs
        self.written[cells] = True

    def readable(self):
        """Which cells can be read: what the store says to hold is right, and the rest is refused."""
        found = self.store.holds(np.arange(self.store.cells))
        held = np.flatnonzero(found & self.written)
        out = np.full((2, len(held), self.store.row_nbytes), 99, np.uint8)
        self.store.read(held, *out)
        assert (out == self.plain[:, held]).all()
        for cell in np.flatnonzero(~found):
            with pytest.raises(HeapStateError):
                self.store.read(np.array([cell]), *out[:, :1])
        return found

    def check(self):
        lost = np.flatnonzero(~np.roll(self.readable(), -self.first))
        held = self.store.cells - 1 - lost[-1] if len(lost) else self.store.cells
        assert self.store.held_before(self.first) == held
        return held


@pytest.mark.parametrize("kernels", frames.registry.names())
@pytest.mark.parametrize("envs", [1, 3])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_after_every_step_the_cells_that_are_held_are_those_that_can_be_read(share, envs, kernels):
    played = Played(make(120, envs, room_for(120, envs, share), kernels), envs)
    lost = 0
    played.write(90)
    for _ in range(60):
        played.write(1 + envs)
        lost += played.check() < played.store.cells
    assert lost > 5


@pytest.mark.parametrize("kernels", frames.registry.names())
def test_no_change_of_an_array_lets_numpy_run_signal_handlers(kernels, monkeypatch):
    made = []

    def setitem(target, key, value):
        # numpy runs signal handlers while it makes an array of a list or a tuple: an interrupt would split the changes.
        assert not isinstance(target, np.ndarray) or not isinstance(key, list)
        assert not isinstance(target, np.ndarray) or not isinstance(value, (list, tuple))
        target[key] = value
        made.append(key)

    for module in ("frames.streams", "memory", "heaps.memory"):
        monkeypatch.setattr(sys.modules[f"sb3_extra_buffers.{module}"], "setitem", setitem)
    for capacity in (room_for(120, 2, 0.5), 1 << 30):
        played = Played(make(120, 2, capacity, kernels), 2)
        played.write(200)
        played.readable()
        played.store.clear()
    heap = heaps.create("memory", 40)
    for cell in [*range(40)] * 3:
        heap.put(cell, [np.zeros(1 << 17, np.uint8)], 1 << 17)
    ring = heaps.create("ring", 40, capacity=1 << 20)
    for cell in [0] * 2_000:  # dead entries of the queue are dropped
        ring.reserve(np.array([cell]), 8)
        ring.commit(np.array([8]))
    assert made


@pytest.mark.parametrize("every", [1, 7, 90])
def test_the_run_of_held_cells_may_be_asked_for_rarely(every):
    played = Played(make(90, 2, room_for(90, 2, 0.6)), 2, seed=1)
    kept = []
    for _ in range(300 // every):
        played.write(every)
        kept.append(played.check())
    assert 0 < min(kept) < max(kept)


def restored(store):
    twin = make(store.cells // store.streams.streams, store.streams.streams, heap=copy.deepcopy(store.heap))
    twin.restore(store.state())
    return twin


def unpickled(store):
    heap = store.heap
    twin = pickle.loads(pickle.dumps(store))
    assert twin.heap is not heap
    return twin


@pytest.mark.parametrize("duplicate", [copy.deepcopy, unpickled, restored])
@pytest.mark.parametrize("heap", ["ring", "countdown"])
def test_a_copy_holds_the_same_cells_and_evicts_the_same_ones_next(heap, duplicate):
    steps, envs = 90, 2
    capacity = room_for(steps, envs, 0.6)
    slots = slots_for(GEOMETRY, CHUNK, envs, 2 * steps * envs)
    own = heaps.create("ring", slots, capacity=capacity) if heap == "ring" else CountdownHeap(slots, capacity)
    played = Played(make(steps, envs, heap=own), envs)
    for _ in range(8):
        played.write(25)
        before = played.readable()
        played.store = duplicate(played.store)
        assert (played.readable() == before).all()
        played.write(5, check=True)
    assert not before.all()


def test_cells_that_are_written_in_no_order_are_found_as_well():
    played, rng = Played(make(90, 2, room_for(90, 2, 0.6)), 2), np.random.default_rng(0)
    played.write(80)
    for _ in range(30):
        played.write(3)
        step = int(rng.integers(0, 90))
        rows = rng.integers(0, 2, (2, 2, played.store.row_nbytes)).astype(np.uint8)
        played.put(2 * step + np.arange(2), *rows)
        played.check()


def test_observations_that_share_their_frames_are_lost_together():
    store, rows = make(90, capacity=room_for(90, 1, 0.6)), np.zeros((30, 240), np.uint8)
    rows[:] = np.random.default_rng(0).integers(1, 256, 240)  # one observation, again and again
    played = Played(store, 1)
    for cell in range(30):
        played.put(np.array([cell]), rows[cell : cell + 1], rows[cell : cell + 1])
    played.step = 30
    played.write(60, check=True)


def test_a_chunk_that_was_too_large_is_not_mistaken_for_the_one_before_it_in_its_slot():
    store, rng, dropped = make(12, capacity=400), np.random.default_rng(0), 0
    played = Played(store, 1)
    for number in range(160):
        cells, rows = np.array([number % 12]), np.ones((2, 1, 240), np.uint8)
        rows[:, :, :: 1 if number % 40 > 20 else 60] = rng.integers(0, 256)
        if number % 40 > 20:
            rows[:] = rng.integers(0, 256, rows.shape)
        try:
            played.put(cells, *rows)
        except HeapFullError:
            dropped += 1
            played.written[cells] = False
        played.readable()
    assert store.dropped == dropped > 3


def test_a_state_of_an_earlier_version_is_read():
    played = Played(make(90, 2, room_for(90, 2, 0.6)), 2)
    played.write(140)
    store, state = played.store, played.store.state()
    references = np.arange(2 * store.cells)
    lost = store.streams.reaching(store.chunks.gone, references)
    state.facts["has_lost"], state.arrays["lost"] = True, lost
    for name in ("gone", "after"):
        del state.arrays[f"chunks/{name}"]
    twin = make(90, 2, heap=copy.deepcopy(store.heap))
    twin.restore(state)
    played.store = twin
    played.write(30, check=True)
    assert lost.any()


@pytest.mark.parametrize("after", [[2, 0, 2], [1, 1], [0, 3], [-1], [1 << 20]])
def test_an_order_of_chunks_that_is_no_list_is_refused(after):
    played = Played(make(90, 2, room_for(90, 2, 0.6)), 2)
    played.write(100)
    state = played.store.state()
    state.arrays["chunks/after"] = np.array(after, np.int32)
    with pytest.raises(StateError):
        make(90, 2, heap=copy.deepcopy(played.store.heap)).restore(state)


def visited(monkeypatch, steps):
    """The largest numbers of observations and of payloads that one step and one question look at, once all is full."""
    played = Played(
        make(steps, 2, room_for(steps, 2, 0.6), "numba" if "numba" in frames.registry.names() else "numpy"), 2
    )
    counts = {"observations": 0, "payloads": 0}
    walk, locate = Streams.walk, TableHeap.locate

    def counting_walk(self, references):
        counts["observations"] += len(references)
        return walk(self, references)

    def counting_locate(self, cells):
        counts["payloads"] += len(cells)
        return locate(self, cells)

    monkeypatch.setattr(Streams, "walk", counting_walk)
    monkeypatch.setattr(TableHeap, "locate", counting_locate)
    played.write(3 * steps // 2)
    played.store.held_before(played.first)
    most = dict.fromkeys(counts, 0)
    for _ in range(60):
        counts.update(dict.fromkeys(counts, 0))
        played.write(1)
        held = played.store.held_before(played.first)
        most = {name: max(most[name], count) for name, count in counts.items()}
    assert 0 < held < played.store.cells
    return most


def test_a_step_looks_at_no_more_observations_and_payloads_in_a_larger_store(monkeypatch):
    small, large = (visited(monkeypatch, steps) for steps in (300, 4000))
    assert large["observations"] <= 2 * small["observations"] < 4000
    assert large["payloads"] <= 2 * small["payloads"] < 200
