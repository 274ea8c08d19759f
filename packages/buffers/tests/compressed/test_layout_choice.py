"""Images become frames or cells, whichever suits ``prefer``; what is sampled is the same either way."""

import copy
import functools
import pickle
from itertools import pairwise

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer, RolloutBuffer

from sb3_extra_buffers.compressed import CompressedDictReplayBuffer, CompressedReplayBuffer, CompressedRolloutBuffer

SHAPE = (3, 72, 80)
SPACE, ACTIONS = spaces.Box(0, 255, SHAPE, np.uint8), spaces.Discrete(3)
STEPS = 90


def sprites(number):
    """A dot on a textured ground: little changes."""
    image = np.random.default_rng(0).integers(0, 256, SHAPE, dtype=np.uint8)
    image[:, number % 30 : number % 30 + 3, 5] = number % 256
    return image


def walking(number):
    """Areas, others in every image: all changes, and every image is simple."""
    areas = np.random.default_rng(number).integers(0, 256, (3, 6, 4), dtype=np.uint8)
    return np.kron(areas, np.ones((1, 12, 20), np.uint8))


def noise(number):
    """Nothing has anything in common."""
    return np.random.default_rng(number).integers(0, 256, SHAPE, dtype=np.uint8)


STORED = {sprites: "frames (1 x ", walking: "chosen: makes the first observations", noise: "none (chosen: "}


def steps_of(images, n_envs, episode=13, count=STEPS):
    """What environments hand over, each at another moment, with true last observations."""
    for step in range(count):
        moments = [step + 1000 * env for env in range(n_envs)]
        before, after = (np.stack([images(moment + later) for moment in moments]) for later in (0, 1))
        done = np.array([(step + env) % episode == episode - 1 for env in range(n_envs)])
        after[done] = 255 - after[done]
        action, reward = np.full((n_envs, 1), step % 3), np.full(n_envs, step, np.float32)
        yield before, after, action, reward, done, [{"TimeLimit.truncated": bool(one)} for one in done]


def same(buffer, plain, seeds=range(3), size=16):
    for seed in seeds:
        batches = []
        for one in (buffer, plain):
            np.random.seed(seed)
            batches.append(one.sample(size))
        for ours, theirs in zip(*batches):
            if isinstance(theirs, dict):
                assert all(th.equal(ours[key], theirs[key]) for key in theirs)
            elif theirs is not None:
                assert ours.dtype == theirs.dtype
                assert th.equal(ours, theirs)


@pytest.mark.parametrize("n_envs", [1, 3])
@pytest.mark.parametrize("images", STORED)
def test_every_batch_is_that_of_stable_baselines3_before_and_after_the_choice(images, n_envs):
    size = 50 * n_envs  # there are 90 steps: the oldest are overwritten
    buffer, plain = (kind(size, SPACE, ACTIONS, "cpu", n_envs) for kind in (CompressedReplayBuffer, ReplayBuffer))
    for number, step in enumerate(steps_of(images, n_envs)):
        buffer.add(*step)
        plain.add(*step)
        if number % 7 == 0:
            same(buffer, plain, seeds=[number])
    same(buffer, plain)
    assert STORED[images] in buffer.memory_report().keys[0].codec


@pytest.mark.parametrize("images", STORED)
def test_what_is_preferred_for_memory_is_the_smallest(images):
    """Held against both layouts, asked for by name."""
    sizes = {}
    ways = {prefer: {"prefer": prefer} for prefer in ("memory", "balanced", "speed")} | {
        layout: {"layout": layout, "prefer": "memory"} for layout in ("frames", "cells")
    }
    for name, options in ways.items():
        buffer = CompressedReplayBuffer(700, SPACE, ACTIONS, "cpu", **options)
        for step in steps_of(images, 1, episode=10**6, count=700):
            buffer.add(*step)
        sizes[name] = buffer.memory_report().live_nbytes
    # A chunk that is not complete yet is not compressed.
    assert sizes["memory"] <= 1.1 * min(sizes.values()) + 64 * SPACE.shape[0] * SPACE.shape[1] * SPACE.shape[2]
    assert sizes["balanced"] <= 1.1 * sizes["speed"]


@pytest.mark.parametrize(
    "wish", [{"layout": "frames"}, {"layout": "frames", "prefer": "memory"}, {"compression_method": "gzip/1"}]
)
def test_who_asks_for_frames_gets_frames(wish):
    buffer = CompressedReplayBuffer(STEPS, SPACE, ACTIONS, "cpu", **wish)
    for step in steps_of(walking, 1):
        buffer.add(*step)
    assert buffer.memory_report().keys[0].codec.startswith("frames (")


@pytest.mark.parametrize("prefer", ["speed", "balanced", "memory"])
@pytest.mark.parametrize("layout", ["auto", "cells"])
@pytest.mark.parametrize("images", STORED)
@pytest.mark.parametrize("stack", [1, 3])
def test_every_setting_returns_what_stable_baselines3_returns(images, prefer, layout, stack):
    """One image, and three that are stacked; before the choice and after it, and through a pickle."""
    space = spaces.Box(0, 255, (3 * stack, *SHAPE[1:]), np.uint8)
    buffer = CompressedReplayBuffer(50, space, ACTIONS, "cpu", prefer=prefer, layout=layout)
    plain = ReplayBuffer(50, space, ACTIONS, "cpu")
    stacked = functools.cache(lambda number: np.concatenate([images(max(number - back, 0)) for back in range(stack)]))
    for number, step in enumerate(steps_of(stacked, 1)):
        for one in (buffer, plain):
            one.add(*step)
        if number in (7, 30, 60):
            same(buffer, plain, seeds=[number])
            buffer = pickle.loads(pickle.dumps(buffer))
    same(buffer, plain)
    (key,) = buffer.memory_report().keys
    assert key.choice.startswith(f"prefer={prefer!r}: ")
    assert key.choice in str(buffer.memory_report())


@pytest.mark.parametrize("prefer", ["speed", "balanced", "memory"])
def test_stacks_of_gray_games_are_patches(prefer):
    """As the default of version 1 stored them: only ``"memory"`` sends every chunk through a codec."""
    space = spaces.Box(0, 255, (4, 84, 84), np.uint8)
    ground = np.random.default_rng(0).integers(0, 256, (84, 84), np.uint8)

    def scene(number):
        image = ground.copy()
        image[number % 70 : number % 70 + 8, 10:16] = number % 256
        return image

    images = [np.stack([scene(number + back) for back in range(4)])[np.newaxis] for number in range(80)]
    buffer = CompressedReplayBuffer(STEPS, space, ACTIONS, "cpu", prefer=prefer)
    for before, after in pairwise(images):
        buffer.add(before, after, np.zeros((1, 1), np.int64), np.zeros(1), np.zeros(1), [{}])
    stored = buffer.memory_report().keys[0].codec
    assert stored.startswith("frames (4 x 7056 bytes, stacked first; patches, ")
    assert ("chunks of 64" in stored) == (prefer == "memory")
    assert ("compressed if large; chunks of 16" in stored) == (prefer != "memory")


@pytest.mark.parametrize("heap", [{"heap": "ring", "heap_kwargs": {"capacity": 1 << 22}}, {"heap": "mmap"}])
def test_a_heap_with_a_limit_gets_frames(heap):
    buffer = CompressedReplayBuffer(STEPS, SPACE, ACTIONS, "cpu", **heap)
    for step in steps_of(walking, 1):
        buffer.add(*step)
    assert buffer.memory_report().keys[0].codec.startswith("frames (")


def test_stacked_images_are_frames_whatever_changes():
    space = spaces.Box(0, 255, (12, 72, 80), np.uint8)
    buffer = CompressedReplayBuffer(STEPS, space, ACTIONS, "cpu")
    images = [np.concatenate([noise(number + back) for back in range(4)])[np.newaxis] for number in range(60)]
    for before, after in pairwise(images):
        buffer.add(before, after, np.zeros((1, 1), np.int64), np.zeros(1), np.zeros(1), [{}])
    assert buffer.memory_report().keys[0].codec.startswith("frames (4 x ")


@pytest.mark.parametrize("n_envs", [4, 64])
def test_environments_that_look_different_are_not_taken_for_changes(n_envs):
    """Each has a ground of its own, on which a dot moves."""
    space = spaces.Box(0, 255, (40, 40), np.uint8)
    ground = np.random.default_rng(0).integers(0, 256, (n_envs, 40, 40), dtype=np.uint8)
    buffer = CompressedReplayBuffer(2000 * n_envs, space, ACTIONS, "cpu", n_envs)
    images = [ground.copy() for _ in range(70)]
    for number, image in enumerate(images):
        image[:, number % 30 : number % 30 + 3, 5] = 0
    for before, after in pairwise(images):
        buffer.add(before, after, np.zeros((n_envs, 1)), np.zeros(n_envs), np.zeros(n_envs), [{}] * n_envs)
    report = buffer.memory_report().keys[0]
    assert report.codec.startswith("frames (1 x 1600 bytes; ")
    estimate = float(report.choice.partition("(")[2].partition(" times")[0])
    assert 50 < estimate < 200  # about 22 bytes of 3,200, with what an observation takes besides


@pytest.mark.parametrize("images", [walking, noise])
@pytest.mark.parametrize("after", [5, 60], ids=["before the choice", "after it"])
@pytest.mark.parametrize("way", ["pickle", "deepcopy", "checkpoint"])
def test_a_copy_goes_on_like_the_original(images, after, way, tmp_path, no_waiting):
    plain = ReplayBuffer(50, SPACE, ACTIONS, "cpu")
    buffer = CompressedReplayBuffer(50, SPACE, ACTIONS, "cpu")
    for number, step in enumerate(steps_of(images, 1)):
        if number == after:
            if way == "checkpoint":
                buffer.save(tmp_path / "buffer")
                buffer = CompressedReplayBuffer.load(tmp_path / "buffer", "cpu", verify=True)
            else:
                buffer = pickle.loads(pickle.dumps(buffer)) if way == "pickle" else copy.deepcopy(buffer)
            same(buffer, plain)
        buffer.add(*step)
        plain.add(*step)
    same(buffer, plain)
    assert STORED[images] in buffer.memory_report().keys[0].codec


@pytest.mark.parametrize("prefer", ["speed", "balanced", "memory"])
@pytest.mark.parametrize("way", ["pickle", "checkpoint"])
def test_a_copy_of_what_never_changed_stores_frames_in_the_same_way(prefer, way, tmp_path):
    space = spaces.Box(0, 255, (32, 32), np.uint8)
    buffer = CompressedReplayBuffer(1000, space, ACTIONS, "cpu", prefer=prefer)
    step = np.zeros((1, 1), np.int64), np.zeros(1), np.zeros(1), [{}]
    for _ in range(300):
        buffer.add(*[np.full((1, 32, 32), 7, np.uint8)] * 2, *step)
    if way == "checkpoint":
        buffer.save(tmp_path / "buffer")
        twin = CompressedReplayBuffer.load(tmp_path / "buffer", "cpu")
    else:
        twin = pickle.loads(pickle.dumps(buffer))
    found = buffer.memory_report().keys[0].codec
    assert found.startswith("frames (1 x 1024 bytes; ")  # the choice was made
    assert twin.memory_report().keys[0].codec == found
    for image in np.random.default_rng(0).integers(0, 256, (100, 1, 32, 32), np.uint8):
        for one in (buffer, twin):
            one.add(image, image, *step)
    assert twin.memory_report().keys == buffer.memory_report().keys
    same(twin, buffer)


def test_a_reset_keeps_the_choice_and_forgets_the_rest():
    buffer, plain = (kind(50, SPACE, ACTIONS, "cpu") for kind in (CompressedReplayBuffer, ReplayBuffer))
    for _ in range(2):
        for one in (buffer, plain):
            one.reset()
            for step in steps_of(walking, 1):
                one.add(*step)
        same(buffer, plain)


def test_batches_are_read_ahead_after_the_choice():
    buffers = [CompressedReplayBuffer(STEPS, SPACE, ACTIONS, "cpu", prefetch=ahead) for ahead in (False, True)]
    for step in steps_of(walking, 1):
        for buffer in buffers:
            buffer.add(*step)
    for buffer in buffers:
        np.random.seed(1)
        buffer.seen = [buffer.sample(8).observations.clone() for _ in range(3)]
    assert all(th.equal(one, other) for one, other in zip(buffers[0].seen, buffers[1].seen))


def test_each_key_is_judged_by_itself():
    space = spaces.Dict({"view": SPACE, "map": SPACE})
    buffer, plain = (kind(60, space, ACTIONS, "cpu") for kind in (CompressedDictReplayBuffer, DictReplayBuffer))
    for views, maps in zip(steps_of(walking, 1), steps_of(sprites, 1)):
        before, after = ({"view": view, "map": chart} for view, chart in zip(views[:2], maps[:2]))
        for one in (buffer, plain):
            one.add(before, after, *views[2:])
    same(buffer, plain)
    codecs = {key.key: key.codec for key in buffer.memory_report().keys}
    assert STORED[walking] in codecs["view"]
    assert STORED[sprites] in codecs["map"]


@pytest.mark.parametrize("images", STORED)
def test_rollouts_choose_too(images):
    buffer, plain = (kind(STEPS, SPACE, ACTIONS, "cpu", n_envs=2) for kind in (CompressedRolloutBuffer, RolloutBuffer))
    zeros = th.zeros(2)
    for _ in range(2):
        for one in (buffer, plain):
            one.reset()
            for before, _, action, reward, done, _ in steps_of(images, 2):
                one.add(before, action, reward, done, zeros, zeros)
            one.compute_returns_and_advantage(zeros, np.zeros(2))
        batches = []
        for one in (buffer, plain):
            np.random.seed(0)
            batches.append(list(one.get(32)))
        for ours, theirs in zip(*batches):
            assert th.equal(ours.observations, theirs.observations)
            assert th.equal(ours.returns, theirs.returns)
    assert STORED[images] in buffer.memory_report().keys[0].codec
