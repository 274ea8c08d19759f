"""A replay buffer that was saved and loaded samples the same, and goes on like the one that was not."""

import copy
import pickle

import numpy as np
import pytest
from gymnasium import spaces

from sb3_extra_buffers.compressed import (
    CompressedDictReplayBuffer,
    CompressedNStepReplayBuffer,
    CompressedReplayBuffer,
)

pytestmark = pytest.mark.usefixtures("no_waiting")
ROWS, STEPS, EVERY = 60, 150, 23
ACTIONS = spaces.Discrete(5)


def state_of(buffer):
    """What must be the same besides samples."""
    storage, report = buffer._storage, buffer.memory_report()
    evicted = (0, 0, 0) if storage.heap is None else storage.heap.evicted
    keys = [(key.key, key.codec, key.raw_nbytes, key.live_nbytes) for key in report.keys]
    return buffer.pos, buffer.full, evicted, buffer._kept_rows(), keys, report.transitions


@pytest.fixture
def both_go_on(tmp_path, feed, same_samples):
    """Feed a buffer that is never saved, and one that is saved and loaded again and again."""

    def check(buffer, twin, steps, batch_size=20, check_state=state_of):
        kind, path = type(buffer), tmp_path / "checkpoint"
        for number, step in enumerate(steps):
            feed(step, buffer, twin)
            if number % EVERY in (0, 4):
                twin.save(path)
                if number % 3:
                    twin = kind.load(path, device="cpu", verify=True)
            if number % 7 == 1:
                assert check_state(twin) == check_state(buffer)
                same_samples(twin, buffer, batch_size, seed=number)
        twin.save(path)
        same_samples(kind.load(path, "cpu"), buffer, batch_size)
        return twin

    return check


def film(space, n_envs, count, stack=4, seed=0, last=False):
    """Stacks of frames, in which a square moves and episodes end."""
    rng = np.random.default_rng(seed)
    side = space.shape[0] if last else space.shape[1]
    frames = np.zeros((n_envs, stack, side, side), np.uint8)
    places = rng.integers(0, side - 4, (n_envs, 2))

    def seen():
        return np.moveaxis(frames, 1, -1).copy() if last else frames.copy()

    for number in range(count):
        obs, done = seen(), rng.random(n_envs) < 0.1
        places = np.clip(places + rng.integers(-1, 2, places.shape), 0, side - 5)
        frames = np.roll(frames, -1, axis=1)
        frames[:, -1] = number % 7
        for env, (row, column) in enumerate(places):
            frames[env, -1, row : row + 4, column : column + 4] = 200
        following = seen()
        frames[done] = 0
        yield obs, following, rng.integers(0, 5, (n_envs, 1)), rng.normal(size=n_envs), done, [{}] * n_envs


HEAPS = {
    "memory": {},
    "ring": {"heap": "ring", "heap_kwargs": {"capacity": 20_000}},
    "mmap": {"heap": "mmap", "heap_kwargs": {"capacity": 20_000}},
    "endless mmap": {"heap": "mmap"},
}
each_heap = pytest.mark.parametrize("heap", HEAPS)


@each_heap
@pytest.mark.parametrize("n_envs", [1, 3])
def test_cells_of_every_codec_and_heap(codec, heap, n_envs, screen, walk, both_go_on):
    options = {"compression_method": codec, "layout": "cells", **HEAPS[heap]}
    pair = [CompressedReplayBuffer(ROWS * n_envs, screen(), ACTIONS, "cpu", n_envs, **options) for _ in range(2)]
    both_go_on(*pair, walk(screen(), ACTIONS, n_envs, STEPS))


@pytest.mark.parametrize("n_envs", [1, 3])
def test_cells_that_wait_for_a_batch(n_envs, screen, walk, both_go_on):
    options = {"compression_method": "gzip", "layout": "cells"}
    pair = [CompressedReplayBuffer(ROWS * n_envs, screen(32), ACTIONS, "cpu", n_envs, **options) for _ in range(2)]
    both_go_on(*pair, walk(screen(32), ACTIONS, n_envs, STEPS))


@pytest.mark.parametrize("prefer", ["speed", "balanced", "memory"])
@pytest.mark.parametrize("heap", ["memory", "mmap"])
@pytest.mark.parametrize(("n_envs", "last"), [(1, False), (3, False), (2, True)])
def test_frames_of_every_preference(prefer, heap, n_envs, last, both_go_on):
    space = spaces.Box(0, 255, (32, 32, 4) if last else (4, 32, 32), np.uint8)
    options = {"prefer": prefer, "heap": heap}
    pair = [CompressedReplayBuffer(ROWS * n_envs, space, ACTIONS, "cpu", n_envs, **options) for _ in range(2)]
    both_go_on(*pair, film(space, n_envs, STEPS, last=last))


@pytest.mark.parametrize("heap", ["ring", "mmap"])
def test_frames_that_are_evicted(heap, both_go_on):
    space = spaces.Box(0, 255, (4, 32, 32), np.uint8)
    options = {"heap": heap, "heap_kwargs": {"capacity": 4_000}}
    pair = [CompressedReplayBuffer(300, space, ACTIONS, "cpu", **options) for _ in range(2)]
    twin = both_go_on(*pair, film(space, 1, 400))
    assert twin._storage.evicted_cells
    assert twin._kept_rows() < 300


def test_frames_that_do_not_get_smaller(screen, walk, noise, both_go_on):
    pair = [CompressedReplayBuffer(ROWS, screen(32), ACTIONS, "cpu") for _ in range(2)]
    both_go_on(*pair, walk(screen(32), ACTIONS, 1, STEPS, draw=noise))


def test_observations_that_stay_raw(walk, both_go_on):
    space = spaces.Box(-1, 1, (5,), np.float32)
    pair = [CompressedReplayBuffer(ROWS, space, ACTIONS, "cpu") for _ in range(2)]
    both_go_on(*pair, walk(space, ACTIONS, 1, STEPS))


def test_one_observation_per_step(codec, screen, walk, both_go_on):
    options = {"optimize_memory_usage": True, "handle_timeout_termination": False, "compression_method": codec}
    pair = [CompressedReplayBuffer(ROWS, screen(), ACTIONS, "cpu", layout="cells", **options) for _ in range(2)]
    both_go_on(*pair, walk(screen(), ACTIONS, 1, STEPS))


@pytest.mark.parametrize("layout", ["cells", "auto"])
@each_heap
def test_spaces_with_keys(layout, heap, composite, walk, both_go_on):
    space, place = composite(32), HEAPS[heap]
    if "heap_kwargs" in place:
        place = {**place, "heap_kwargs": {"capacity": 200_000}}
    pair = [CompressedDictReplayBuffer(ROWS * 2, space, ACTIONS, "cpu", 2, layout=layout, **place) for _ in range(2)]
    both_go_on(*pair, walk(space, ACTIONS, 2, STEPS))


def test_several_steps_at_once(screen, walk, both_go_on):
    options = {"n_steps": 3, "gamma": 0.9}
    pair = [CompressedNStepReplayBuffer(ROWS * 2, screen(), ACTIONS, "cpu", 2, **options) for _ in range(2)]
    twin = both_go_on(*pair, walk(screen(), ACTIONS, 2, STEPS))
    assert (twin.n_steps, twin.gamma) == (3, 0.9)


@pytest.mark.parametrize("layout", ["cells", "auto"])
def test_a_batch_that_is_drawn_ahead_comes_along(layout, tmp_path, screen, walk, feed, same):
    pair = [CompressedReplayBuffer(ROWS, screen(), ACTIONS, "cpu", layout=layout, prefetch=True) for _ in range(2)]
    twin, path = pair[1], tmp_path / "checkpoint"
    for number, step in enumerate(walk(screen(), ACTIONS, 1, STEPS)):
        feed(step, pair[0], twin)
        found = []
        for buffer in (pair[0], twin):
            np.random.seed(number)
            found.append(buffer.sample(9))
        same(*found)
        if number % EVERY == 0:
            twin.save(path)
            twin = CompressedReplayBuffer.load(path, "cpu")


@pytest.mark.parametrize(
    "options",
    [
        {"dtypes": np.uint8},
        {"dtypes": {"elem_type": np.dtype(np.int16), "runs_type": np.uint16}},
        {"normalize_images": True},
        {"output_dtype": "float", "threads": 2},
        {"compression_method": "gzip", "compression_kwargs": {"level": 3}, "decompression_kwargs": {}},
    ],
    ids=lambda options: " ".join(options),
)
def test_options_come_along(options, walk, both_go_on):
    space = spaces.Box(0, 200, (4, 12, 12), np.int32)

    def make():
        return CompressedReplayBuffer(ROWS, space, ACTIONS, "cpu", **options)

    def draw(space, rng, count):
        return rng.integers(0, 4, (count, *space.shape)).astype(space.dtype)

    twin = both_go_on(make(), make(), walk(space, ACTIONS, 1, STEPS, draw=draw))
    assert twin._options == make()._options


ACTION_SPACES = [
    spaces.Discrete(7, start=-3),
    spaces.MultiDiscrete([2, 5, 3]),
    spaces.MultiBinary(4),
    spaces.Box(-np.inf, np.array([1, np.inf, 3], np.float32), (3,), np.float32),
]


@pytest.mark.parametrize("actions", ACTION_SPACES, ids=lambda space: type(space).__name__)
def test_every_space_of_actions(actions, screen, walk, both_go_on):
    pair = [CompressedReplayBuffer(ROWS, screen(), actions, "cpu") for _ in range(2)]
    twin = both_go_on(*pair, walk(screen(), actions, 1, STEPS))
    assert twin.action_space == actions
    assert twin.observation_space == screen()


@each_heap
def test_an_empty_buffer_and_one_that_was_reset(heap, tmp_path, screen, walk, feed, same_samples):
    pair = [CompressedReplayBuffer(ROWS, screen(), ACTIONS, "cpu", **HEAPS[heap]) for _ in range(2)]
    for number, step in enumerate(walk(screen(), ACTIONS, 1, 100)):
        if number in (0, 40, 41):
            for buffer in pair:
                buffer.reset()
            pair[1].save(tmp_path / "checkpoint")
            pair[1] = CompressedReplayBuffer.load(tmp_path / "checkpoint", "cpu")
        feed(step, *pair)
        if number == 30:
            pair[1].save(tmp_path / "checkpoint")
    same_samples(*pair, 50)
    assert state_of(pair[0]) == state_of(pair[1])


def test_what_was_loaded_can_be_pickled(tmp_path, screen, walk, feed, same_samples):
    buffer = CompressedReplayBuffer(ROWS, screen(), ACTIONS, "cpu", compression_method="gzip")
    for step in walk(screen(), ACTIONS, 1, 50):
        feed(step, buffer)
    buffer.save(tmp_path / "checkpoint")
    loaded = CompressedReplayBuffer.load(tmp_path / "checkpoint", "cpu")
    for copied in (pickle.loads(pickle.dumps(loaded)), copy.deepcopy(loaded)):
        same_samples(copied, buffer, 30)
