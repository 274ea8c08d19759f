"""On a real device, CUDA, ROCm or MPS: the same batches as Stable-Baselines3's. Skipped without one."""

import copy
import pickle

import numpy as np
import pytest
import torch as th
from gpu_hardware import expect_same, needs_device, on_each_device, sampled
from gpu_player import ACTIONS, SPACES
from gymnasium import spaces
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer, RolloutBuffer

from sb3_extra_buffers import codecs
from sb3_extra_buffers.codecs import CellSpec, bind
from sb3_extra_buffers.errors import DeviceError
from sb3_extra_buffers.gpu_buffers import (
    GpuDictReplayBuffer,
    GpuReplayBuffer,
    GpuRolloutBuffer,
    create_observation_store,
)
from sb3_extra_buffers.gpu_buffers.arrays import check_dtype
from sb3_extra_buffers.gpu_buffers.codecs import decoder_for
from sb3_extra_buffers.gpu_buffers.devices import as_device

pytestmark = [*needs_device, on_each_device]
IMAGE = SPACES["image"]
METHODS = [(name, "auto", "cells") for name in codecs.names()]
METHODS += [(name, "device", "cells") for name in ("none", "rle")] + [("auto", "device", "frames")]


def skip_what_it_lacks(device, space):
    try:
        check_dtype("a test", np.dtype(space.dtype), as_device(device))
    except DeviceError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(("codec", "decode_on", "layout"), METHODS)
@pytest.mark.parametrize("name", SPACES)
def test_batches_are_those_of_stable_baselines3(device, codec, decode_on, layout, name, play):
    if layout == "frames" and len(SPACES[name].shape) < 2:
        pytest.skip("frames are images")
    skip_what_it_lacks(device, SPACES[name])
    options = {"compression_method": codec, "decode_on": decode_on, "layout": layout}
    ours = GpuReplayBuffer(60, SPACES[name], ACTIONS, device, 2, **options)
    theirs = ReplayBuffer(60, SPACES[name], ACTIONS, "cpu", 2)
    for steps in (1, 17, 40):
        play([ours, theirs], steps, seed=steps)
        expect_same(sampled(ours), sampled(theirs), device)


@pytest.mark.parametrize("codec", ["none", "rle"])
def test_rollouts(device, codec, roll):
    ours = GpuRolloutBuffer(16, IMAGE, ACTIONS, device, n_envs=3, compression_method=codec)
    theirs = RolloutBuffer(16, IMAGE, ACTIONS, "cpu", n_envs=3)
    roll([ours, theirs])
    np.random.seed(0)
    expected = list(theirs.get(13))
    np.random.seed(0)
    for found, other in zip(ours.get(13), expected):
        expect_same(found, other, device)


@pytest.mark.parametrize(
    "options",
    [
        {"compression_method": {"image": "rle", "vec": "none"}, "decode_on": "device"},
        {"compression_method": {"image": "gzip", "vec": "rle"}},
    ],
    ids=["device", "host"],
)
def test_dictionaries(device, options, play):
    space = spaces.Dict({"image": IMAGE, "vec": SPACES["vector"]})
    ours = GpuDictReplayBuffer(60, space, ACTIONS, device, 2, **options)
    theirs = DictReplayBuffer(60, space, ACTIONS, "cpu", 2)
    for steps in (17, 70):
        play([ours, theirs], steps, seed=steps)
        expect_same(sampled(ours), sampled(theirs), device)


@pytest.mark.parametrize(
    "options", [{"compression_method": "rle", "decode_on": "device"}, {"compression_method": "gzip"}]
)
def test_a_budget_drops_the_oldest_and_the_others_are_right(device, options, play):
    """What is on the CPU beside it has the same payloads, and drops the same."""
    options = {**options, "heap_bytes": 18_000, "on_full": "evict"}
    pair = [GpuReplayBuffer(400, IMAGE, ACTIONS, where, 2, **options) for where in (device, "cpu")]
    for seed in range(4):  # several laps of the ring
        play(pair, 60, seed=seed)
        assert pair[0].shared_heap.evicted == pair[1].shared_heap.evicted
        expect_same(sampled(pair[0], 100), sampled(pair[1], 100), device)
    assert pair[0].shared_heap.evicted.cells
    pair[0].shared_heap.compact()
    expect_same(sampled(pair[0], 100), sampled(pair[1], 100), device)


@pytest.mark.parametrize("dtype", ["u1", "<i2", "<f4", "<i8"])
@pytest.mark.parametrize("count", [1, 65, 1000, 28224, 65537])
def test_payloads_that_the_device_encodes_are_those_of_the_host(device, dtype, count):
    random, cell = np.random.default_rng(0), CellSpec(np.dtype(dtype), count)
    rows = np.stack(
        [np.sort(random.integers(0, high, count)) for high in (1, 9, 250)] + [random.integers(0, 120, count)]
    )
    rows = rows.astype(dtype).view(np.uint8).reshape(4, -1)
    codec = bind("rle", cell)
    payloads, lengths = decoder_for(codec, as_device(device), "device").encode(th.from_numpy(rows).to(device))
    found, begin = payloads.cpu().numpy(), 0
    for row, length in zip(rows, lengths):
        assert found[begin : begin + length].tobytes() == bytes(codec.encode(row.view(dtype)))
        begin += -(-length // 16) * 16


@pytest.mark.parametrize("name", ["none", "rle", "gzip"])
def test_observation_stores(device, name):
    store, random = create_observation_store(name, 6, 2, 500, th.uint8, device), np.random.default_rng(0)
    shown = {}
    for number in [*range(12), *random.integers(0, 12, 40).tolist()]:
        content = th.from_numpy(random.integers(0, 256 if number % 2 else 3, 1000).astype(np.uint8)).to(device)
        shown[number] = content[::2]  # has a stride
        store.write(number // 2, number % 2, shown[number])
    for number, value in shown.items():
        found = store.read(number // 2, number % 2)
        assert found.device.type == device
        assert th.equal(found, value)


def test_from_device_to_device_and_back(device, play):
    ours = GpuReplayBuffer(60, IMAGE, ACTIONS, device, 2, compression_method="rle")
    theirs = ReplayBuffer(60, IMAGE, ACTIONS, "cpu", 2)
    play([ours, theirs], 40)
    twins = [copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))]
    for buffer in [ours, *twins]:
        assert buffer.buffer_device.type == device
        expect_same(sampled(buffer), sampled(theirs), device)
    ours.to("cpu")
    assert th.equal(sampled(ours).observations, sampled(theirs).observations)
    ours.to(device)
    expect_same(sampled(ours), sampled(theirs), device)
