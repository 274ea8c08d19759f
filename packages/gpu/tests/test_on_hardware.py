"""On a real device: the same batches, no waiting, the memory that was promised, and the speed. Skipped without one."""

import copy
import pickle
from importlib.util import find_spec
from statistics import median
from time import perf_counter

import numpy as np
import pytest
import torch as th
from gpu_player import ACTIONS, SPACES
from gymnasium import spaces
from stable_baselines3.common.buffers import ReplayBuffer, RolloutBuffer

from sb3_extra_buffers import codecs
from sb3_extra_buffers.errors import PayloadError
from sb3_extra_buffers.gpu_buffers import GpuReplayBuffer, GpuRolloutBuffer

HAS_DEVICE = th.cuda.is_available()
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not HAS_DEVICE, reason="torch finds no CUDA or ROCm device here"),
]
IMAGE = SPACES["image"]
SCREEN = spaces.Box(0, 255, (4, 84, 84), np.uint8)
METHODS = [(name, "auto", "cells") for name in codecs.names()]
METHODS += [(name, "device", "cells") for name in ("none", "rle")] + [("auto", "device", "frames")]


def expect_same(found, expected):
    for name, ours, theirs in zip(expected._fields, found, expected):
        if theirs is not None:
            assert ours.device.type == "cuda", name
            assert th.equal(ours.cpu(), theirs), name


def sampled(buffer, size=40, seed=0):
    np.random.seed(seed)
    return buffer.sample(size)


@pytest.mark.parametrize(("codec", "decode_on", "layout"), METHODS)
@pytest.mark.parametrize("name", SPACES)
def test_batches_are_those_of_stable_baselines3(codec, decode_on, layout, name, play):
    if layout == "frames" and len(SPACES[name].shape) < 2:
        pytest.skip("frames are images")
    options = {"compression_method": codec, "decode_on": decode_on, "layout": layout}
    ours = GpuReplayBuffer(60, SPACES[name], ACTIONS, "cuda", 2, **options)
    theirs = ReplayBuffer(60, SPACES[name], ACTIONS, "cpu", 2)
    for steps in (1, 17, 40):
        play([ours, theirs], steps, seed=steps)
        expect_same(sampled(ours), sampled(theirs))


@pytest.mark.parametrize("codec", ["none", "rle"])
def test_rollouts(codec, roll):
    ours = GpuRolloutBuffer(16, IMAGE, ACTIONS, "cuda", n_envs=3, compression_method=codec)
    theirs = RolloutBuffer(16, IMAGE, ACTIONS, "cpu", n_envs=3)
    roll([ours, theirs])
    np.random.seed(0)
    expected = list(theirs.get(13))
    np.random.seed(0)
    for found, other in zip(ours.get(13), expected):
        expect_same(found, other)


def screens(count, seed=0):
    """Frames in which a few things move over a background, stacked."""
    random = np.random.default_rng(seed)
    background = np.repeat(random.integers(0, 99, (84, 12), np.uint8), 7, axis=1)
    shown = np.repeat(background[np.newaxis], count + 4, axis=0)
    for thing in range(6):
        for step in range(count + 4):
            row, column = (7 * thing + step) % 76, (11 * thing + 3 * step) % 76
            shown[step, row : row + 8, column : column + 8] = 200 + thing
    return np.lib.stride_tricks.sliding_window_view(shown, 4, axis=0).transpose(0, 3, 1, 2)


def filled(kind, device, transitions, **options):
    buffer, shown = kind(transitions, SCREEN, ACTIONS, device, 1, **options), screens(transitions)
    for step in range(transitions):
        pair = (np.ascontiguousarray(shown[step + part : step + part + 1]) for part in (0, 1))
        buffer.add(*pair, np.zeros(1), np.zeros(1), np.zeros(1), [{}])
    return buffer


@pytest.mark.parametrize("options", [{"compression_method": "rle"}, {"compression_method": "auto", "layout": "frames"}])
def test_making_a_batch_does_not_wait_for_the_device(options):
    ours = filled(GpuReplayBuffer, "cuda", 500, decode_on="device", **options)
    ours.sample(64)  # compiles
    storage, cells = ours._storage, np.arange(64)
    th.cuda.synchronize()
    th.cuda.set_sync_debug_mode("error")
    try:
        storage.read_both(cells)
    finally:
        th.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("options", [{"compression_method": "rle"}, {"compression_method": "auto", "layout": "frames"}])
def test_device_memory_is_a_tenth_more_than_what_is_live(options):
    th.cuda.empty_cache()
    before = th.cuda.memory_allocated()
    ours = filled(GpuReplayBuffer, "cuda", 3000, **options)
    grown, heap = th.cuda.memory_allocated() - before, ours.shared_heap
    assert grown <= 1.1 * heap.live + SCREEN.shape[0] * 84 * 84 + (1 << 20)  # torch hands out pieces of up to a MiB


@pytest.mark.parametrize("options", [{"compression_method": "rle"}, {"compression_method": "auto", "layout": "frames"}])
@pytest.mark.parametrize("size", [32, 256])
def test_sampling_is_faster_than_uploading_raw_batches(options, size):
    """What it is for: the batch is on the device sooner than Stable-Baselines3's buffer could bring it there."""
    ours = filled(GpuReplayBuffer, "cuda", 3000, decode_on="device", **options)
    theirs = filled(ReplayBuffer, "cuda", 3000)
    seconds = {id(ours): [], id(theirs): []}
    for _ in range(60):
        for buffer in (ours, theirs):
            th.cuda.synchronize()
            begin = perf_counter()
            buffer.sample(size)
            th.cuda.synchronize()
            seconds[id(buffer)].append(perf_counter() - begin)
    ratio = median(seconds[id(ours)][10:]) / median(seconds[id(theirs)][10:])
    assert ratio < 1, f"it took {ratio:.2f} times as long"


def test_from_device_to_device_and_back(play):
    ours = GpuReplayBuffer(60, IMAGE, ACTIONS, "cuda", 2, compression_method="rle")
    theirs = ReplayBuffer(60, IMAGE, ACTIONS, "cpu", 2)
    play([ours, theirs], 40)
    twins = [copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))]
    for buffer in [ours, *twins]:
        assert buffer.buffer_device.type == "cuda"
        expect_same(sampled(buffer), sampled(theirs))
    ours.to("cpu")
    assert th.equal(sampled(ours).observations, sampled(theirs).observations)
    ours.to("cuda")
    expect_same(sampled(ours), sampled(theirs))


def test_damage_is_an_error_one_batch_later():
    ours = filled(GpuReplayBuffer, "cuda", 50, compression_method="rle", decode_on="device")
    heap = ours.shared_heap
    cells = np.flatnonzero(heap.locate(np.arange(heap.cells))[1])
    for payload in heap.slices(*heap.locate(cells)):
        payload.fill_(255)
    ours.sample(8)
    th.cuda.synchronize()
    with pytest.raises(PayloadError, match="rle"):
        ours.sample(8)


@pytest.mark.parametrize("codec", ["zstd-3", "zstd5", "lz4-block/1"])
def test_nvcomp_reads_what_the_host_wrote(codec):
    if find_spec("nvidia") is None or find_spec("nvidia.nvcomp") is None:
        pytest.skip("nvCOMP is not installed")
    if codec.partition("/")[0].rstrip("-0123456789") not in codecs.names():
        pytest.skip("the codec is not installed")
    ours = filled(GpuReplayBuffer, "cuda", 300, compression_method=codec, decode_on="device")
    theirs = filled(ReplayBuffer, "cpu", 300)
    for seed in range(5):
        expect_same(sampled(ours, 100, seed), sampled(theirs, 100, seed))
