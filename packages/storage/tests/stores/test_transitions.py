"""``TransitionStore``: what a transition leads to is stored once where it can be, and is exact always."""

import pickle

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sb3_extra_buffers.codecs import CellSpec, bind
from sb3_extra_buffers.errors import HeapFullError
from sb3_extra_buffers.heaps import create
from sb3_extra_buffers.stores import CellStore, NextFace, ObservationFace, RawStore, TransitionStore
from sb3_extra_buffers.stores.batched import BatchedStore


class Flaky(RawStore):
    """A store that fails once, at a write that is chosen beforehand."""

    patience = -1

    def write(self, cells, rows, /):
        self.patience -= 1
        if self.patience == 0:
            raise HeapFullError("memory", rows.nbytes, 0)
        super().write(cells, rows)

    def __setstate__(self, state):
        super().__setstate__({**state, "patience": -1})


def pair(cells, nbytes, codec):
    """Two stores of equal cells: plain ones that can fail, with batches or without, or payloads on one heap."""
    if codec == "raw":
        return Flaky(cells, nbytes), Flaky(cells, nbytes)
    if codec == "batched":
        return BatchedStore(Flaky(cells, nbytes), 3), Flaky(cells, nbytes)
    heap, bound = create("memory", 2 * cells), bind(codec, CellSpec(np.uint8, nbytes))
    return CellStore(bound, heap, 0, cells), CellStore(bound, heap, cells, cells)


def flat(values, nbytes):
    return np.array(values, np.uint8).reshape(-1, 1).repeat(nbytes, axis=1)


def read(face, cells=None):
    cells = np.arange(face.cells) if cells is None else cells
    out = np.full((len(cells), face.row_nbytes), 99, np.uint8)
    face.read(cells, out)
    return out


def play(store, envs, steps, ends, nbytes=16, first=0):
    """Walk through a ring as a replay buffer does; ``ends`` says after which step which environments start anew."""
    rows = store.observations.cells // envs
    numbers = np.random.default_rng(first)
    observation = numbers.integers(0, 256, (envs, nbytes), np.uint8)
    for step in range(first, first + steps):
        cells = step % rows * envs + np.arange(envs)
        following = numbers.integers(0, 256, (envs, nbytes), np.uint8)
        store.write_observations(cells, observation)
        store.write_next(cells, following)
        anew = numbers.integers(0, 256, (envs, nbytes), np.uint8)
        observation = np.where(np.asarray(ends(step)).reshape(-1, 1), anew, following)


class TransitionMachine(RuleBasedStateMachine):
    """Two plain arrays beside the store: whatever order things are written in, both can be read back."""

    @initialize(
        rows=st.integers(1, 4),
        envs=st.integers(1, 3),
        nbytes=st.sampled_from([3, 8]),
        codec=st.sampled_from(["raw", "batched", "rle"]),
    )
    def make(self, rows, envs, nbytes, codec):
        self.rows, self.envs, self.nbytes, self.flaky = rows, envs, nbytes, codec != "rle"
        self.store = TransitionStore(*pair(rows * envs, nbytes, codec), envs)
        self.faces = ObservationFace(self.store), NextFace(self.store)
        self.plain = np.zeros((2, rows * envs, nbytes), np.uint8)
        self.pos, self.led_to = 0, np.zeros(envs, np.uint8)

    def write(self, side, cells, values):
        rows = flat(values, self.nbytes)
        try:
            self.faces[side].write(np.asarray(cells), rows)
        except HeapFullError:
            return False
        rows[:] = 77  # the caller's array is the caller's
        self.plain[side][cells] = flat(values, self.nbytes)
        return True

    @rule(data=st.data())
    def step(self, data):
        """One step of a replay buffer, where each environment goes on or begins anew."""
        values = st.lists(st.integers(0, 5), min_size=self.envs, max_size=self.envs)
        anew, starts, ends = data.draw(values), data.draw(values), data.draw(values)
        cells = self.pos * self.envs + np.arange(self.envs)
        begins = np.where(np.array(anew) == 0, starts, self.led_to)
        if self.write(0, cells, begins) and self.write(1, cells, ends):
            self.led_to, self.pos = np.array(ends), (self.pos + 1) % self.rows

    @rule(data=st.data(), side=st.integers(0, 1))
    def write_anywhere(self, data, side):
        cells = data.draw(st.lists(st.integers(0, self.rows * self.envs - 1), min_size=1, max_size=4, unique=True))
        values = data.draw(st.lists(st.integers(0, 5), min_size=len(cells), max_size=len(cells)))
        self.write(side, cells, values)

    @precondition(lambda self: getattr(self, "flaky", False))
    @rule(patience=st.integers(1, 4), apart=st.booleans())
    def fail_soon(self, patience, apart):
        store = self.store.apart._store if apart else self.store.observations
        getattr(store, "_store", store).patience = patience

    @rule(data=st.data(), side=st.integers(0, 1))
    def read_anywhere(self, data, side):
        cells = data.draw(st.lists(st.integers(0, self.rows * self.envs - 1), max_size=6))
        assert (read(self.faces[side], np.array(cells, np.int64)) == self.plain[side][cells]).all()

    @rule()
    def travel(self):
        self.faces = pickle.loads(pickle.dumps(self.faces))
        self.store = self.faces[0]._transitions

    @rule()
    def clear(self):
        self.faces[0].clear()
        self.plain[:] = 0
        self.pos = 0

    @invariant()
    def nothing_is_lost(self):
        if hasattr(self, "store"):
            for face, expected in zip(self.faces, self.plain):
                assert (read(face) == expected).all()


TestTransitions = TransitionMachine.TestCase
TestTransitions.settings = settings(max_examples=150, stateful_step_count=30, deadline=None, derandomize=True)


@pytest.mark.parametrize("envs", [1, 3])
def test_what_follows_without_a_break_is_stored_once(envs):
    store = TransitionStore(*pair(60, 16, "raw"), envs)
    play(store, envs, 45, lambda step: [False] * envs)
    assert store.observations.stored_nbytes() == min(45 * envs, 60) * 16
    assert store.apart.stored_nbytes() == 0


def test_each_end_of_an_episode_is_stored_apart():
    store = TransitionStore(*pair(60, 16, "raw"), 3)
    play(store, 3, 15, lambda step: [step == 4, step in (4, 9), False])
    assert store.apart.stored_nbytes() == 3 * 16


def test_sharing_halves_what_compressed_observations_take():
    shared, alone = TransitionStore(*pair(100, 64, "gzip"), 1), pair(100, 64, "gzip")
    numbers = np.random.default_rng(0)
    frames = numbers.integers(0, 3, (101, 64), np.uint8)
    for step in range(100):
        cells = np.array([step])
        shared.write_observations(cells, frames[step : step + 1])
        shared.write_next(cells, frames[step + 1 : step + 2])
        for store, row in zip(alone, frames[step : step + 2]):
            store.write(cells, row[np.newaxis])
    kept = shared.observations.stored_nbytes() + shared.apart.stored_nbytes()
    both = sum(store.stored_nbytes() for store in alone)
    assert 0.49 * both < kept < 0.51 * both


def test_slots_are_reused_so_that_what_is_apart_does_not_grow_with_the_laps():
    envs, rows = 2, 50
    store = TransitionStore(*pair(envs * rows, 16, "raw"), envs)
    ends = np.random.default_rng(1).random((20 * rows, envs)) < 0.1
    play(store, envs, 20 * rows, lambda step: ends[step])
    counts = ends.reshape(20 * rows, envs).sum(axis=1)
    most = max(int(counts[step : step + rows + 1].sum()) for step in range(20 * rows))
    assert store.apart.stored_nbytes() <= most * 16
    assert most < 30  # of 2000 transitions, of which 200 ended an episode


def test_a_transition_that_leads_back_to_the_oldest_one_wraps_around():
    store = TransitionStore(*pair(4, 8, "raw"), 1)
    for step in range(9):
        store.write_observations(np.array([step % 4]), flat([step], 8))
        store.write_next(np.array([step % 4]), flat([step + 1], 8))
    assert read(ObservationFace(store))[:, 0].tolist() == [8, 5, 6, 7]
    assert read(NextFace(store))[:, 0].tolist() == [9, 6, 7, 8]
    assert store.apart.stored_nbytes() == 0


@pytest.mark.parametrize("patience", [1, 2])
@pytest.mark.parametrize("apart", [True, False])
def test_a_failure_between_two_steps_loses_nothing_and_the_step_can_be_repeated(apart, patience):
    store = TransitionStore(*pair(6, 8, "raw"), 2)
    play(store, 2, 5, lambda step: [True, False], nbytes=8)
    before = [read(face(store)) for face in (ObservationFace, NextFace)]
    (store.apart._store if apart else store.observations).patience = patience
    cells, rows = np.array([4, 5]), flat([1, 2], 8)
    try:
        store.write_observations(cells, rows)
    except HeapFullError:
        assert all((read(face(store)) == old).all() for face, old in zip((ObservationFace, NextFace), before))
        store.write_observations(cells, rows)
    assert (read(ObservationFace(store))[4:] == rows).all()
    assert (read(NextFace(store)) == before[1]).all()


def test_next_observations_of_a_new_store_are_zero():
    for codec in ("raw", "rle"):
        store = TransitionStore(*pair(6, 8, codec), 2)
        assert not read(NextFace(store)).any()
        store.write_observations(np.array([0, 1]), flat([3, 4], 8))
        assert not read(NextFace(store)).any()


def test_what_waits_can_be_read_and_is_counted_as_stored():
    store = TransitionStore(*pair(6, 8, "raw"), 2)
    empty = store.overhead
    store.write_next(np.array([0, 1]), flat([3, 4], 8))
    assert store.overhead == empty
    assert read(NextFace(store))[:, 0].tolist() == [3, 4, 0, 0, 0, 0]
    assert (NextFace(store).stored_nbytes(), store.apart.stored_nbytes()) == (16, 0)
    store.write_observations(np.array([2, 3]), flat([3, 4], 8))
    assert (NextFace(store).stored_nbytes(), store.apart.stored_nbytes()) == (0, 0)


def test_overwriting_an_observation_out_of_order_keeps_it_for_the_transition_that_leads_to_it():
    store = TransitionStore(*pair(6, 8, "raw"), 1)
    play(store, 1, 6, lambda step: [False], nbytes=8)
    before = read(NextFace(store))
    store.write_observations(np.array([3]), flat([200], 8))
    assert (read(NextFace(store)) == before).all()
    assert (read(ObservationFace(store))[3] == 200).all()


def test_an_observation_that_a_heap_has_dropped_can_be_overwritten_out_of_order():
    heap, codec = create("ring", 13, capacity=40), bind("none", CellSpec(np.uint8, 8))
    store = TransitionStore(CellStore(codec, heap, 0, 6), CellStore(codec, heap, 6, 6), 1)
    play(store, 1, 4, lambda step: [False], nbytes=8)
    heap.reserve(np.array([12]), 40)[:] = 0  # a key that is stored beside it, and drives all out
    heap.commit(np.array([40]))
    assert not ObservationFace(store).holds(np.arange(6)).any()
    store.write_observations(np.array([3]), flat([200], 8))
    assert (read(ObservationFace(store), np.array([3])) == 200).all()


def test_faces_describe_their_side():
    store = TransitionStore(*pair(6, 8, "gzip"), 2)
    own, following = ObservationFace(store), NextFace(store)
    assert (own.cells, own.row_nbytes, own.codec) == (following.cells, following.row_nbytes, following.codec)
    assert own.codec == "gzip/9"
    play(store, 2, 2, lambda step: [True, True], nbytes=8)
    assert own.stored_nbytes() == store.observations.stored_nbytes() > 0
    assert following.stored_nbytes() - 16 == store.apart.stored_nbytes() > 0  # two rows wait
    assert own.overhead + following.overhead == store.observations.overhead + store.overhead
    assert own.holds(np.arange(6)).tolist() == [True] * 4 + [False] * 2
    following.clear()
    assert own.stored_nbytes() + following.stored_nbytes() == 0


def test_what_could_never_be_stored_does_not_wait():
    heap, bound = create("ring", 8, capacity=99), bind("rle", CellSpec(np.uint8, 100))
    transitions = TransitionStore(CellStore(bound, heap, 0, 4), CellStore(bound, heap, 4, 4), 1)
    obs, following = ObservationFace(transitions), NextFace(transitions)
    for cell in range(2):
        obs.write(np.array([cell]), flat([cell], 100))
        following.write(np.array([cell]), flat([cell + 1], 100))
    obs.write(np.array([2]), flat([2], 100))
    with pytest.raises(HeapFullError, match="One row must fit as a whole"):
        following.write(np.array([2]), np.arange(100, dtype=np.uint8)[np.newaxis])
    assert following.stored_nbytes() == 0
    following.write(np.array([2]), flat([3], 100))
    obs.write(np.array([3]), flat([9], 100))
    assert np.array_equal(read(following, np.arange(3)), flat([1, 2, 3], 100))
