"""Frames on heaps that keep to a budget: what stands still, what is too large, what is lost."""

import threading

import numpy as np
import pytest
from gymnasium import spaces

from sb3_extra_buffers.compressed import CompressedDictReplayBuffer, CompressedReplayBuffer
from sb3_extra_buffers.errors import HeapFullError, HeapStateError

STACK, ACTIONS = spaces.Box(0, 255, (4, 16, 16), np.uint8), spaces.Discrete(2)


class Camera:
    """A stack of the four newest images."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.images = [self.noise() for _ in range(4)]

    def noise(self):
        return self.rng.integers(1, 256, (16, 16)).astype(np.uint8)

    def push(self, image):
        self.images = [*self.images[1:], image]

    @property
    def stack(self):
        return np.stack(self.images)


def add(buffer, obs, next_obs, number):
    count = buffer.n_envs
    rest = np.zeros((count, 1)), np.full(count, number), np.zeros(count, bool), [{}] * count
    buffer.add(obs, next_obs, *rest)


def check(batch, truth):
    """Compare a batch with what was added, by the number that is its reward."""
    for index, number in enumerate(batch.rewards.flatten().tolist()):
        assert any(np.array_equal(batch.observations[index], obs) for obs in truth[int(number)])


@pytest.mark.parametrize(("heap", "room"), [("ring", {"capacity": 60_000}), ("mmap", {})])
@pytest.mark.parametrize("stop", range(10, 18))
@pytest.mark.parametrize("shifts", [True, False])
def test_an_environment_that_stands_still_does_not_take_the_others_along(heap, room, stop, shifts):
    buffer = CompressedReplayBuffer(
        4000, STACK, ACTIONS, device="cpu", n_envs=2, layout="frames", heap=heap, heap_kwargs=room
    )
    cameras, truth, kept = (Camera(0), Camera(1)), {}, []
    for step in range(400):
        truth[step] = obs = np.stack([camera.stack for camera in cameras])
        cameras[0].push(cameras[0].noise())
        if step < stop:
            cameras[1].push(cameras[1].noise())
        elif shifts:
            cameras[1].push(cameras[1].images[-1])
        add(buffer, obs, np.stack([camera.stack for camera in cameras]), step)
        kept.append(buffer._kept_rows())
    # A row goes with its chunk of sixteen, and those in which the other one began to stand still with theirs.
    assert min(kept[240:]) > 180
    check(buffer.sample(200), truth)


def test_a_key_that_stands_still_does_not_refer_to_what_another_one_drove_out():
    space = spaces.Dict(moving=STACK, still=STACK)
    buffer = CompressedDictReplayBuffer(
        2000, space, ACTIONS, device="cpu", layout="frames", heap="ring", heap_kwargs={"capacity": 60_000}
    )
    cameras, truth = {"moving": Camera(0), "still": Camera(1)}, {}
    for step in range(400):
        truth[step] = obs = {key: camera.stack[np.newaxis] for key, camera in cameras.items()}
        cameras["moving"].push(cameras["moving"].noise())
        cameras["still"].push(cameras["still"].noise() if step < 12 else cameras["still"].images[-1])
        add(buffer, obs, {key: camera.stack[np.newaxis] for key, camera in cameras.items()}, step)
    assert buffer._kept_rows() > 180
    batch = buffer.sample(100)
    for index, number in enumerate(batch.rewards.flatten().tolist()):
        for key, observations in batch.observations.items():
            np.testing.assert_array_equal(observations[index], truth[int(number)][key][0])


def test_what_is_held_back_and_too_large_is_dropped_once_and_training_goes_on():
    buffer = CompressedReplayBuffer(
        200, STACK, ACTIONS, device="cpu", layout="frames", heap="ring", heap_kwargs={"capacity": 3000}
    )
    camera, truth, refused = Camera(0), {}, []
    for step in range(120):
        if step < 7:  # no stack: the first of them are held back until it is known how frames lie
            obs, next_obs = (np.stack([camera.noise() for _ in range(4)])[np.newaxis] for _ in range(2))
        else:
            obs = camera.stack[np.newaxis]
            camera.push(np.full((16, 16), step % 7 + 1, np.uint8))
            next_obs = camera.stack[np.newaxis]
        truth[step] = obs
        try:
            add(buffer, obs, next_obs, step)
        except HeapFullError:
            refused.append(step)
    assert refused == [7]
    check(buffer.sample(100), truth)


def test_what_is_lost_is_not_read_as_something_else():
    buffer = CompressedReplayBuffer(
        60, STACK, ACTIONS, device="cpu", layout="frames", heap="ring", heap_kwargs={"capacity": 2000}
    )
    camera, truth, lost = Camera(0), {}, 0
    for step in range(300):
        obs = camera.stack[np.newaxis]
        image = camera.noise() if (step // 60) % 2 else np.full((16, 16), step % 8 + 1, np.uint8)
        camera.push(image)
        try:
            add(buffer, obs, camera.stack[np.newaxis], step)
            truth[step] = obs[0]
        except HeapFullError:
            continue
        for row in range(buffer.size()):
            try:
                found = buffer.reconstruct_obs(row)
            except HeapStateError:
                lost += 1
                continue
            np.testing.assert_array_equal(found, truth[int(buffer.rewards[row, 0])])
    assert lost > 100


def test_threads_that_only_read_do_not_disturb_each_other():
    buffer, camera = CompressedReplayBuffer(1000, STACK, ACTIONS, device="cpu", layout="frames"), Camera(0)
    truth, wrong = [], []
    for step in range(1000):
        truth.append(camera.stack)
        camera.push(camera.noise())
        add(buffer, truth[-1][np.newaxis], camera.stack[np.newaxis], step)
    expected = np.stack(truth)

    def read(seed):
        rng = np.random.default_rng(seed)
        for _ in range(200):
            rows = rng.integers(0, 1000, 64)
            if not np.array_equal(buffer.observations[rows, np.zeros(64, np.int64)], expected[rows]):
                wrong.append(rows)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
