"""Replay batches that are drawn one ahead: those of the original, with the content of the moment they were drawn at."""

import copy
import pickle
import threading

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer

from sb3_extra_buffers.compressed import CompressedDictReplayBuffer, CompressedReplayBuffer

ROWS, N_ENVS = 10, 3
STEPS = ROWS * 5 // 2
DISCRETE, BOX = spaces.Discrete(5), spaces.Box(-2, 2, (2,), np.float64)

#: Their class, ours, action space, arguments of both, arguments of ours alone.
KINDS = {
    "plain": (ReplayBuffer, CompressedReplayBuffer, DISCRETE, {}, {}),
    "no timeouts": (ReplayBuffer, CompressedReplayBuffer, BOX, {"handle_timeout_termination": False}, {}),
    "optimized with timeouts": (ReplayBuffer, CompressedReplayBuffer, DISCRETE, {}, {"optimize_memory_usage": True}),
    "dict": (DictReplayBuffer, CompressedDictReplayBuffer, BOX, {}, {}),
}
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
BOTH_KINDS = pytest.mark.parametrize("kind", ["plain", "dict"])
EVERY_LAYOUT = pytest.mark.parametrize(("side", "layout"), [(12, "cells"), (32, "cells"), (32, "frames")])
ROUTES = {"pickle": lambda buffer: pickle.loads(pickle.dumps(buffer)), "deepcopy": copy.deepcopy}


class OneBehind:
    """What another buffer would have handed out if it had been asked one batch earlier.

    A batch is drawn by that buffer's own ``sample``, from a copy of it and from the random numbers of that moment.
    """

    def __init__(self, buffer):
        self.buffer, self.waiting = buffer, None
        self.observation_space, self.action_space = buffer.observation_space, buffer.action_space

    def add(self, *step):
        self.buffer.add(*step)

    def sample(self, batch_size, env=None):
        if self.waiting is None or self.waiting[0] != batch_size:
            self._draw(batch_size)
        _, then, random = self.waiting
        self._draw(batch_size)
        now = np.random.get_state()
        np.random.set_state(random)
        batch = then.sample(batch_size, env=env)
        np.random.set_state(now)
        return batch

    def reset(self):
        self.buffer.reset()
        self.waiting = None

    def _draw(self, batch_size):
        self.waiting = batch_size, copy.deepcopy(self.buffer), np.random.get_state()
        self.buffer.sample(batch_size)  # moves the random numbers on


@pytest.fixture
def pair(screen, composite):
    def pair(kind, side=12, n_envs=N_ENVS, **storage):
        theirs, ours, actions, both, own = KINDS[kind]
        space = composite(side) if kind == "dict" else screen(side)
        place = ROWS * n_envs, space, actions, "cpu"
        return (
            ours(*place, n_envs=n_envs, prefetch=True, **both, **own, **storage),
            OneBehind(theirs(*place, n_envs=n_envs, **both)),
        )

    return pair


@pytest.fixture
def play(walk, feed):
    """Add and sample in turns, two and a half times through a buffer."""

    # How many samples after each step: also none, and two in a row.
    def play(buffer, steps=STEPS, sizes=(8,), env=None, seed=0, n_envs=N_ENVS, times=(0, 1, 2), **walking):
        np.random.seed(seed)
        found = []
        for number, step in enumerate(
            walk(buffer.observation_space, buffer.action_space, n_envs, steps, seed, **walking)
        ):
            feed(step, buffer)
            if env is not None:
                env.ret_rms.update(step[3])  # statistics move on while a batch waits
                stats = env.obs_rms if not isinstance(env.obs_rms, dict) else env.obs_rms["image"]
                stats.mean += 0.25
            for _ in range(times[number % len(times)]):
                found.append(copy.deepcopy(buffer.sample(sizes[len(found) % len(sizes)], env=env)))
        return found, np.random.random()

    return play


@pytest.fixture
def same_next(same):
    """Check that both hand out the same from the same random numbers on, and leave the same behind."""

    def same_next(ours, theirs, batch_size=4, times=1):
        random, found = np.random.get_state(), []
        for buffer in (ours, theirs):
            np.random.set_state(random)
            found.append(([copy.deepcopy(buffer.sample(batch_size)) for _ in range(times)], np.random.random()))
        same(*found)

    return same_next


class BrokenError(Exception):
    pass


def fail_in_threads(buffer):
    """Let reading fail, but in the main thread."""
    read = buffer._storage.read_both

    def fail(*asked):
        if threading.current_thread() is threading.main_thread():
            return read(*asked)
        raise BrokenError

    buffer._storage.read_both = fail


@EVERY_KIND
@EVERY_LAYOUT
@pytest.mark.parametrize("n_envs", [1, N_ENVS])
def test_a_batch_is_what_the_original_would_have_drawn_at_the_sample_before(
    kind, side, layout, n_envs, codec, pair, play, same
):
    ours, theirs = pair(kind, side, n_envs, compression_method=codec, layout=layout)
    same(play(ours, n_envs=n_envs), play(theirs, n_envs=n_envs))


@EVERY_KIND
def test_batches_are_normalized_with_what_is_known_when_they_are_handed_out(kind, pair, play, same, normalizer):
    found = []
    for buffer in pair(kind):
        keys = ["scan", "image"] if kind == "dict" else None
        env = normalizer(buffer.observation_space, buffer.action_space, N_ENVS, keys)
        found.append(play(buffer, env=env))
    same(*found)


@EVERY_KIND
def test_while_nothing_is_added_batches_are_those_of_the_original(kind, pair, walk, feed, same):
    ours, theirs = pair(kind)
    for step in walk(ours.observation_space, ours.action_space, N_ENVS, STEPS):
        feed(step, ours, theirs)
    found = []
    for buffer in (ours, theirs.buffer):
        np.random.seed(4)
        found.append([buffer.sample(16) for _ in range(6)])
    same(*found)


@EVERY_KIND
def test_the_same_seed_gives_the_same_batches(kind, codec, pair, play, same):
    same(*(play(pair(kind, compression_method=codec)[0]) for _ in range(2)))


@EVERY_KIND
def test_another_batch_size_is_drawn_anew(kind, pair, play, same):
    ours, theirs = pair(kind)
    sizes = (4, 4, 7, 7, 1, 64)
    same(play(ours, sizes=sizes), play(theirs, sizes=sizes))


@BOTH_KINDS
@pytest.mark.parametrize("output", [{"output_dtype": "float"}, {"normalize_images": True}])
def test_batches_are_converted_as_asked(kind, output, pair, play, same):
    ours, _ = pair(kind, **output)
    _, own, actions, both, more = KINDS[kind]
    plain = own(ROWS * N_ENVS, ours.observation_space, actions, "cpu", n_envs=N_ENVS, **both, **more, **output)
    same(play(ours), play(OneBehind(plain)))


@BOTH_KINDS
@EVERY_LAYOUT
@pytest.mark.parametrize("times", [(0, 1, 2), (0,) * 39 + (2,)], ids=["some of it", "all of it"])
def test_a_ring_that_evicts_what_was_drawn_does_not_take_it_back(
    kind, side, layout, times, screen, composite, play, noise, same
):
    _, own, actions, _, _ = KINDS[kind]
    row_nbytes = N_ENVS * (4 * side * side + 320 * (kind == "dict"))
    room = 32 if layout == "frames" else 8  # of rows; frames are stored in chunks of sixteen
    place = 60 * N_ENVS, composite(side) if kind == "dict" else screen(side), actions, "cpu"
    ring = {
        "heap": "ring",
        "heap_kwargs": {"capacity": room * row_nbytes},
        "layout": layout,
        "compression_method": "none",
    }
    ours, plain = (own(*place, n_envs=N_ENVS, prefetch=ahead, **ring) for ahead in (True, False))
    same(*(play(buffer, steps=130, times=times, draw=noise) for buffer in (ours, OneBehind(plain))))
    assert ours.memory_report().evicted > 0


@EVERY_KIND
def test_a_reset_drops_the_batch_that_waits(kind, pair, play, same):
    ours, theirs = pair(kind)
    for seed in range(3):
        same(play(ours, seed=seed), play(theirs, seed=seed))
        ours.reset()
        theirs.reset()
        with pytest.raises(ValueError, match="the buffer is empty"):
            ours.sample(8)


@BOTH_KINDS
@EVERY_LAYOUT
@pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES)
@pytest.mark.parametrize("added", [0, 1, ROWS])
def test_a_copy_in_the_middle_goes_on_like_the_original(kind, side, layout, route, added, pair, play, walk, feed, same):
    """With as many steps as there are rows in between, nothing of what the waiting batch was drawn from is left."""
    ours, theirs = pair(kind, side, layout=layout)
    same(play(ours, steps=ROWS + 2), play(theirs, steps=ROWS + 2))
    steps = list(walk(ours.observation_space, ours.action_space, N_ENVS, ROWS + 8, seed=7))
    for step in steps[:added]:
        feed(step, ours, theirs)
    random, found = np.random.get_state(), []
    for buffer in (ours, route(ours), route(route(ours)), theirs):
        np.random.set_state(random)
        batches = []
        for step in steps[added : added + 8]:
            batches.append(copy.deepcopy(buffer.sample(8)))
            feed(step, buffer)
        found.append((batches, np.random.random()))
    for other in found[:3]:
        same(other, found[3])


def test_what_is_assigned_by_hand_is_drawn_one_batch_later(pair, play, same):
    ours, theirs = pair("plain")
    same(play(ours), play(theirs))
    random, found = np.random.get_state(), []
    for buffer, arrays in ((ours, ours), (theirs, theirs.buffer)):
        np.random.set_state(random)
        batches = []
        for value in range(4):
            batches.append(copy.deepcopy(buffer.sample(8)))
            arrays.observations[...] = np.full(arrays.observations.shape, value, np.uint8)
        found.append(batches)
    same(*found)


@BOTH_KINDS
def test_an_error_of_the_worker_is_raised_by_the_sample_that_it_belongs_to(kind, pair, play, same_next):
    ours, theirs = pair(kind)
    play(ours)
    play(theirs)
    fail_in_threads(ours)
    for _ in range(3):
        same_next(ours, theirs)  # read before, or drawn anew and read at once; the next one cannot be read
        with pytest.raises(BrokenError):
            ours.sample(4)
        theirs.waiting = None
    del ours._storage.read_both
    same_next(ours, theirs, times=3)


@pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES)
def test_a_batch_that_could_not_be_read_travels_and_is_tried_again(route, pair, play, same_next):
    ours, theirs = pair("plain")
    play(ours)
    play(theirs)
    fail_in_threads(ours)
    same_next(ours, theirs)
    del ours._storage.read_both  # it would travel too
    twin = route(ours)
    same_next(twin, theirs, times=3)
    with pytest.raises(BrokenError):
        ours.sample(4)


def test_a_row_that_was_not_stored_completely_is_not_drawn_ahead(screen, walk, noise):
    """The batch that waits is handed out; then there is nothing to draw, and that is said."""
    space = screen()
    buffer = CompressedReplayBuffer(
        1,
        space,
        DISCRETE,
        "cpu",
        compression_method="none",
        heap="ring",
        heap_kwargs={"capacity": 2000},
        prefetch=True,
    )
    for step in walk(space, DISCRETE, 1, 1, draw=noise):
        buffer.add(*step)
    expected = buffer.sample(3)
    buffer._is_torn = True
    assert (buffer.sample(3).observations == expected.observations).all()
    with pytest.raises(ValueError, match="no step is left that could be stored completely"):
        buffer.sample(3)
