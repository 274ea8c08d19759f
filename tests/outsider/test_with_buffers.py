"""Plugins of a stranger in buffers: layouts, eviction, checkpoints, pickles and the automatic choice."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from gymnasium import spaces

from sb3_extra_buffers.compressed import CompressedReplayBuffer
from sb3_extra_buffers.stores import auto

ROWS, SPACE = 60, spaces.Box(0, 255, (4, 36, 36), np.uint8)
HEAP = {"heap": "fifo", "heap_kwargs": {"capacity": 1 << 20}}
LAYOUTS = ["cells", "frames"]


def images(count):
    """Stacks of four images with a moving square of noise."""
    frames = np.zeros((count + 4, 36, 36), np.uint8)
    for number, frame in enumerate(frames):
        place = number * 3 % 24
        frame[place : place + 12, 5:25] = np.random.default_rng(number).integers(0, 256, (12, 20), np.uint8)
    return np.stack([frames[number : number + 4] for number in range(count + 1)])


def filled(steps=ROWS, **options):
    buffer = CompressedReplayBuffer(ROWS, SPACE, spaces.Discrete(3), "cpu", **options)
    for step, (obs, next_obs) in enumerate(pairwise(images(steps))):
        done = np.array([step % 25 == 24])
        buffer.add(obs[None], next_obs[None], np.array([[step % 3]]), np.array([float(step)]), done, [{}])
    return buffer


def expect_sound(buffer, least=1):
    """Fail unless all samples are steps as they were added; return how many different ones there are."""
    truth, seen = images(400), set()
    for _ in range(20):
        batch = buffer.sample(16)
        for obs, next_obs, reward in zip(batch.observations, batch.next_observations, batch.rewards):
            step = int(reward)
            assert (obs.numpy() == truth[step]).all()
            assert (next_obs.numpy() == truth[step + 1]).all()
            seen.add(step)
    assert len(seen) >= least
    return seen


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("codec", ["bz2", "gzip"])
@pytest.mark.parametrize("heap", [HEAP, {}], ids=["fifo", "memory"])
def test_buffers_store_through_them(layout, codec, heap):
    expect_sound(filled(90, layout=layout, compression_method=codec, **heap), least=30)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_full_heap_evicts_the_oldest_steps(layout):
    options = {"layout": layout, "compression_method": "gzip", "heap": "fifo"}
    needed = filled(**options, heap_kwargs={"capacity": 1 << 20}).memory_report().live_nbytes
    buffer = filled(90, **options, heap_kwargs={"capacity": needed // 2})
    assert buffer.memory_report().evicted > 0
    seen = expect_sound(buffer)
    assert max(seen) >= 80
    assert min(seen) > 30


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("codec", ["bz2", "gzip"])
def test_checkpoints_and_pickles_hold_the_same(layout, codec, tmp_path):
    buffer = filled(90, layout=layout, compression_method=codec, **HEAP)
    buffer.save(tmp_path / "checkpoint")
    for step in range(3):  # saved again, with what is new
        buffer.add(*(images(91 + step)[-2:, None]), np.array([[0]]), np.array([90.0 + step]), np.array([False]), [{}])
    buffer.save(tmp_path / "checkpoint")
    loaded = CompressedReplayBuffer.load(tmp_path / "checkpoint", "cpu", verify=True)
    for twin in (loaded, pickle.loads(pickle.dumps(buffer))):
        assert (twin.pos, twin.full) == (buffer.pos, buffer.full)
        assert twin.memory_report().heap == "fifo"
        for name in ("observations", "next_observations"):
            assert (getattr(twin, name)[:] == getattr(buffer, name)[:]).all()
        assert max(expect_sound(twin, least=30)) >= 85
    loaded.save(tmp_path / "again")
    assert CompressedReplayBuffer.load(tmp_path / "again", "cpu").pos == buffer.pos


def repeated_noise(count):
    """Images whose halves are equal and more than 32 KiB apart, where only a codec with a large window finds them."""
    halves = np.random.default_rng(0).integers(0, 256, (count, 1, 200, 200)).astype(np.uint8)
    return np.concatenate([halves, halves], axis=2)


@pytest.fixture
def beside_built_in_codecs(monkeypatch):
    """The stranger's codec competes with those of the core, whatever else is installed."""
    monkeypatch.setattr(auto, "names", lambda: ("bz2", "gzip", "none", "rle"))


@pytest.mark.usefixtures("beside_built_in_codecs")
def test_a_strangers_codec_that_is_smaller_at_a_fair_cost_wins():
    images = repeated_noise(12)
    space = spaces.Box(0, 255, images.shape[1:], np.uint8)
    buffer = CompressedReplayBuffer(20, space, spaces.Discrete(3), "cpu", layout="cells")
    for obs, next_obs in pairwise(images):
        buffer.add(obs[None], next_obs[None], np.array([[0]]), np.array([0.0]), np.array([False]), [{}])
    assert "bz2/1" in str(buffer.memory_report())
    assert np.array_equal(buffer.observations[5, 0], images[5])


@pytest.mark.usefixtures("beside_built_in_codecs")
def test_a_strangers_codec_can_win_chunks_of_frames():
    images = repeated_noise(70)
    space = spaces.Box(0, 255, images.shape[1:], np.uint8)
    options = {"layout": "frames", "prefer": "memory"}
    buffer = CompressedReplayBuffer(80, space, spaces.Discrete(3), "cpu", **options)
    for obs, next_obs in pairwise(images):
        buffer.add(obs[None], next_obs[None], np.array([[0]]), np.array([0.0]), np.array([False]), [{}])
    assert "bz2/9" in str(buffer.memory_report())
    assert np.array_equal(buffer.observations[5, 0], images[5])
