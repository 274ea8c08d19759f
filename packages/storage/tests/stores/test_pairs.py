"""``SharedStore`` and ``PairStore``: next observations are exact, and stored once where they are observations too."""

import pickle

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sb3_extra_buffers.codecs import CellSpec, bind
from sb3_extra_buffers.errors import HeapFullError
from sb3_extra_buffers.heaps import create
from sb3_extra_buffers.heaps.memory import MemoryHeap
from sb3_extra_buffers.stores import CellStore, PairStore, RawStore, SharedStore


class Flaky(RawStore):
    """A store that fails once, at a chosen write."""

    patience = -1

    def write(self, cells, obs, next_obs=None, /):
        self.patience -= 1
        if self.patience == 0:
            raise HeapFullError("memory", obs.nbytes, 0)
        super().write(cells, obs, next_obs)

    def __setstate__(self, state):
        super().__setstate__({**state, "patience": -1})


class FlakyHeap(MemoryHeap):
    """A heap that fails once, at a chosen commit: the batch that was to be stored stays pending."""

    patience = -1

    def commit(self, lengths, /):
        self.patience -= 1
        if self.patience == 0:
            raise HeapFullError("memory", int(lengths.sum()), 0)
        super().commit(lengths)


def pair(cells, nbytes, codec):
    """Two stores of equal cells: plain ones that can fail, with batches or without, or payloads on one heap."""
    if codec == "raw":
        return Flaky(cells, nbytes), Flaky(cells, nbytes)
    if codec == "batched":
        bound = bind("none", CellSpec(np.uint8, nbytes))
        return CellStore(bound, FlakyHeap(cells), 0, cells, batch=3), Flaky(cells, nbytes)
    heap, bound = create("memory", 2 * cells), bind(codec, CellSpec(np.uint8, nbytes))
    return CellStore(bound, heap, 0, cells), CellStore(bound, heap, cells, cells)


def flat(values, nbytes):
    return np.array(values, np.uint8).reshape(-1, 1).repeat(nbytes, axis=1)


def read(store, cells=None, is_next=False):
    cells = np.arange(store.cells) if cells is None else cells
    out = np.full((len(cells), store.row_nbytes), 99, np.uint8)
    store.read(cells, *((None, out) if is_next else (out, None)))
    return out


def read_next(store, cells=None):
    return read(store, cells, is_next=True)


def play(store, envs, steps, ends, nbytes=16, first=0):
    """Write steps as a replay buffer does; ``ends`` says after which steps which environments are reset."""
    rows = store.cells // envs
    numbers = np.random.default_rng(first)
    observation = numbers.integers(0, 256, (envs, nbytes), np.uint8)
    for step in range(first, first + steps):
        cells = step % rows * envs + np.arange(envs)
        following = numbers.integers(0, 256, (envs, nbytes), np.uint8)
        store.write(cells, observation, following)
        reset = numbers.integers(0, 256, (envs, nbytes), np.uint8)
        observation = np.where(np.asarray(ends(step)).reshape(-1, 1), reset, following)


class PairMachine(RuleBasedStateMachine):
    """Two plain arrays beside the store: both can be read back, in whatever order cells are written."""

    @initialize(
        rows=st.integers(1, 4),
        envs=st.integers(1, 3),
        nbytes=st.sampled_from([3, 8]),
        codec=st.sampled_from(["raw", "batched", "rle"]),
        shares=st.sampled_from([True, True, True, False]),
    )
    def make(self, rows, envs, nbytes, codec, shares):
        self.rows, self.envs, self.nbytes, self.flaky = rows, envs, nbytes, codec != "rle"
        observations, others = pair(rows * envs, nbytes, codec)
        self.store = SharedStore(observations, others, envs) if shares else PairStore(observations, others)
        self.plain = np.zeros((2, rows * envs, nbytes), np.uint8)
        self.pos, self.led_to = 0, np.zeros(envs, np.uint8)

    def write(self, side, cells, values):
        rows = flat(values, self.nbytes)
        try:
            self.store.write(np.asarray(cells), *((None, rows) if side else (rows, None)))
        except HeapFullError:
            return False
        rows[:] = 77  # the store keeps no array of the caller
        self.plain[side][cells] = flat(values, self.nbytes)
        return True

    @rule(data=st.data())
    def step(self, data):
        """One step of a replay buffer, where each environment continues or is reset."""
        values = st.lists(st.integers(0, 5), min_size=self.envs, max_size=self.envs)
        anew, starts, ends = data.draw(values), data.draw(values), data.draw(values)
        cells = self.pos * self.envs + np.arange(self.envs)
        begins = np.where(np.array(anew) == 0, starts, self.led_to)
        if self.write(0, cells, begins) and self.write(1, cells, ends):
            self.led_to, self.pos = np.array(ends), (self.pos + 1) % self.rows

    @rule(data=st.data())
    def step_in_one_write(self, data):
        """Observations and next observations in one call. A failed write leaves each of them old or new."""
        values = st.lists(st.integers(0, 5), min_size=self.envs, max_size=self.envs)
        anew, starts, ends = data.draw(values), data.draw(values), data.draw(values)
        cells = self.pos * self.envs + np.arange(self.envs)
        both = [flat(np.where(np.array(anew) == 0, starts, self.led_to), self.nbytes), flat(ends, self.nbytes)]
        try:
            self.store.write(cells, *both)
        except HeapFullError:
            for side, rows in enumerate(both):
                found, before = read(self.store, cells, bool(side)), self.plain[side][cells]
                assert (found == rows).all() or (found == before).all()
                self.plain[side][cells] = found
            return
        self.plain[:, cells] = both
        self.led_to, self.pos = np.array(ends), (self.pos + 1) % self.rows

    @rule(data=st.data(), side=st.integers(0, 1))
    def write_anywhere(self, data, side):
        cells = data.draw(st.lists(st.integers(0, self.rows * self.envs - 1), min_size=1, max_size=4, unique=True))
        values = data.draw(st.lists(st.integers(0, 5), min_size=len(cells), max_size=len(cells)))
        self.write(side, cells, values)

    @precondition(lambda self: getattr(self, "flaky", False))
    @rule(patience=st.integers(1, 4), apart=st.booleans())
    def fail_soon(self, patience, apart):
        store = others_of(self.store) if apart else self.store.observations
        getattr(store, "_heap", store).patience = patience

    @rule(data=st.data(), side=st.integers(0, 1))
    def read_anywhere(self, data, side):
        cells = data.draw(st.lists(st.integers(0, self.rows * self.envs - 1), max_size=6))
        assert (read(self.store, np.array(cells, np.int64), bool(side)) == self.plain[side][cells]).all()

    @rule()
    def duplicate(self):
        self.store = pickle.loads(pickle.dumps(self.store))

    @rule()
    def clear(self):
        self.store.clear()
        self.plain[:] = 0
        self.pos = 0

    @invariant()
    def nothing_is_lost(self):
        if hasattr(self, "store"):
            for side, expected in enumerate(self.plain):
                assert (read(self.store, is_next=bool(side)) == expected).all()


def others_of(store):
    """The store of the next observations that are not shared."""
    return store.apart._store if isinstance(store, SharedStore) else store._next


TestPairs = PairMachine.TestCase
TestPairs.settings = settings(max_examples=200, stateful_step_count=30, deadline=None, derandomize=True)


@pytest.mark.parametrize("envs", [1, 3])
def test_next_observations_that_are_the_following_observations_are_stored_once(envs):
    store = SharedStore(*pair(60, 16, "raw"), envs)
    play(store, envs, 45, lambda step: [False] * envs)
    assert store.observations.stored_nbytes() == min(45 * envs, 60) * 16
    assert store.apart.stored_nbytes() == 0


def test_the_last_observation_of_each_episode_is_stored_apart():
    store = SharedStore(*pair(60, 16, "raw"), 3)
    play(store, 3, 15, lambda step: [step == 4, step in (4, 9), False])
    assert store.apart.stored_nbytes() == 3 * 16


def test_sharing_halves_the_size_of_compressed_observations():
    shared, alone = SharedStore(*pair(100, 64, "gzip"), 1), pair(100, 64, "gzip")
    numbers = np.random.default_rng(0)
    frames = numbers.integers(0, 3, (101, 64), np.uint8)
    for step in range(100):
        cells = np.array([step])
        shared.write(cells, frames[step : step + 1], frames[step + 1 : step + 2])
        for store, row in zip(alone, frames[step : step + 2]):
            store.write(cells, row[np.newaxis])
    kept = shared.observations.stored_nbytes() + shared.apart.stored_nbytes()
    both = sum(store.stored_nbytes() for store in alone)
    assert 0.49 * both < kept < 0.51 * both


def test_slots_are_reused_so_that_last_observations_do_not_add_up():
    envs, rows = 2, 50
    store = SharedStore(*pair(envs * rows, 16, "raw"), envs)
    ends = np.random.default_rng(1).random((20 * rows, envs)) < 0.1
    play(store, envs, 20 * rows, lambda step: ends[step])
    counts = ends.reshape(20 * rows, envs).sum(axis=1)
    most = max(int(counts[step : step + rows + 1].sum()) for step in range(20 * rows))
    assert store.apart.stored_nbytes() <= most * 16
    assert most < 30  # of 2000 transitions, of which 200 ended an episode


def test_the_newest_next_observation_is_shared_with_the_cell_at_the_begin():
    store = SharedStore(*pair(4, 8, "raw"), 1)
    for step in range(9):
        store.write(np.array([step % 4]), flat([step], 8), flat([step + 1], 8))
    assert read(store)[:, 0].tolist() == [8, 5, 6, 7]
    assert read_next(store)[:, 0].tolist() == [9, 6, 7, 8]
    assert store.apart.stored_nbytes() == 0


@pytest.mark.parametrize("patience", [1, 2])
@pytest.mark.parametrize("apart", [True, False])
def test_a_failed_write_changes_nothing_and_can_be_repeated(apart, patience):
    store = SharedStore(*pair(6, 8, "raw"), 2)
    play(store, 2, 5, lambda step: [True, False], nbytes=8)
    before = [read(store), read_next(store)]
    (store.apart._store if apart else store.observations).patience = patience
    cells, rows = np.array([4, 5]), flat([1, 2], 8)
    try:
        store.write(cells, rows)
    except HeapFullError:
        assert (read(store) == before[0]).all()
        assert (read_next(store) == before[1]).all()
        store.write(cells, rows)
    assert (read(store)[4:] == rows).all()
    assert (read_next(store) == before[1]).all()


def test_next_observations_of_a_new_store_are_zero():
    for codec in ("raw", "rle"):
        store = SharedStore(*pair(6, 8, codec), 2)
        assert not read_next(store).any()
        store.write(np.array([0, 1]), flat([3, 4], 8))
        assert not read_next(store).any()


def test_pending_next_observations_can_be_read_and_count_as_stored():
    store = SharedStore(*pair(6, 8, "raw"), 2)
    empty = store.overhead
    store.write(np.array([0, 1]), None, flat([3, 4], 8))
    assert store.overhead == empty
    assert read_next(store)[:, 0].tolist() == [3, 4, 0, 0, 0, 0]
    assert (store.stored_nbytes(), store.observations.stored_nbytes(), store.apart.stored_nbytes()) == (16, 0, 0)
    store.write(np.array([2, 3]), flat([3, 4], 8))
    assert (store.stored_nbytes(), store.observations.stored_nbytes(), store.apart.stored_nbytes()) == (16, 16, 0)


def test_an_observation_overwritten_out_of_order_is_kept_as_a_next_observation():
    store = SharedStore(*pair(6, 8, "raw"), 1)
    play(store, 1, 6, lambda step: [False], nbytes=8)
    before = read_next(store)
    store.write(np.array([3]), flat([200], 8))
    assert (read_next(store) == before).all()
    assert (read(store)[3] == 200).all()


def test_an_evicted_observation_can_be_overwritten_out_of_order():
    heap, codec = create("ring", 13, capacity=40), bind("none", CellSpec(np.uint8, 8))
    store = SharedStore(CellStore(codec, heap, 0, 6), CellStore(codec, heap, 6, 6), 1)
    play(store, 1, 4, lambda step: [False], nbytes=8)
    heap.reserve(np.array([12]), 40)[:] = 0  # another key on the same heap, which evicts all others
    heap.commit(np.array([40]))
    assert not store.holds(np.arange(6)).any()
    store.write(np.array([3]), flat([200], 8))
    assert (read(store, np.array([3])) == 200).all()


def test_sizes_and_descriptions_are_those_of_both_sides():
    observations, others = pair(6, 8, "gzip")
    store = SharedStore(observations, others, 2)
    assert (store.cells, store.row_nbytes, store.describe()) == (6, 8, "gzip/9")
    assert store.active is store
    play(store, 2, 2, lambda step: [True, True], nbytes=8)
    assert observations.stored_nbytes() > 0
    assert others.stored_nbytes() > 0
    assert store.stored_nbytes() == observations.stored_nbytes() + others.stored_nbytes() + 16  # two rows are pending
    assert store.overhead == observations.overhead + store.apart.overhead + 6
    assert store.holds(np.arange(6)).tolist() == [True] * 4 + [False] * 2
    store.clear()
    assert store.stored_nbytes() == 0


def test_a_pair_holds_the_cells_that_both_stores_hold():
    observations, others = pair(6, 8, "rle")
    store = PairStore(observations, others)
    store.write(np.array([0, 1]), flat([3, 4], 8))
    store.write(np.array([1, 2]), None, flat([5, 6], 8))
    assert store.holds(np.arange(6)).tolist() == [False, True, False, False, False, False]
    assert read(store)[:3, 0].tolist() == [3, 4, 0]
    assert read_next(store)[:3, 0].tolist() == [0, 5, 6]
    assert store.stored_nbytes() == observations.stored_nbytes() + others.stored_nbytes()
    assert store.describe() == "rle"
    store.clear()
    assert (store.stored_nbytes(), read(store).any(), read_next(store).any()) == (0, False, False)


@pytest.mark.parametrize("step", range(1, 12))
def test_a_store_restored_from_a_state_continues_like_the_original(step):
    heap, bound = create("memory", 12), bind("rle", CellSpec(np.uint8, 8))

    def build(heap):
        return SharedStore(CellStore(bound, heap, 0, 6, batch=3), CellStore(bound, heap, 6, 6), 2)

    store = build(heap)
    play(store, 2, step, lambda step: [step % 2, False], nbytes=8)
    twin = build(pickle.loads(pickle.dumps(heap)))
    twin.restore(store.state())
    play(store, 2, 5, lambda step: [False, True], nbytes=8, first=step)
    play(twin, 2, 5, lambda step: [False, True], nbytes=8, first=step)
    assert (read(twin) == read(store)).all()
    assert (read_next(twin) == read_next(store)).all()
    assert twin.stored_nbytes() == store.stored_nbytes()


def test_a_next_observation_that_can_never_be_stored_does_not_become_pending():
    heap, bound = create("ring", 8, capacity=99), bind("rle", CellSpec(np.uint8, 100))
    store = SharedStore(CellStore(bound, heap, 0, 4), CellStore(bound, heap, 4, 4), 1, is_bounded=True)
    for cell in range(2):
        store.write(np.array([cell]), flat([cell], 100), flat([cell + 1], 100))
    store.write(np.array([2]), flat([2], 100))
    before = store.stored_nbytes()
    with pytest.raises(HeapFullError, match="One row must fit as a whole"):
        store.write(np.array([2]), None, np.arange(100, dtype=np.uint8)[np.newaxis])
    assert store.stored_nbytes() == before == store.observations.stored_nbytes()
    store.write(np.array([2]), None, flat([3], 100))
    store.write(np.array([3]), flat([9], 100))
    assert np.array_equal(read_next(store, np.arange(3)), flat([1, 2, 3], 100))
