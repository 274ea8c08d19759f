"""``prefetch``: the next batch is read on the device, too, and travels with a buffer that is saved."""

import copy
import pickle

import numpy as np
import pytest
import torch as th
from gpu_player import ACTIONS, SPACES, expect_equal

from sb3_extra_buffers.compressed import CompressedReplayBuffer, CompressedRolloutBuffer
from sb3_extra_buffers.gpu_buffers import GpuReplayBuffer, GpuRolloutBuffer
from sb3_extra_buffers.gpu_buffers.codecs.none import NoneOnDevice
from sb3_extra_buffers.gpu_buffers.codecs.rle import RleOnDevice
from sb3_extra_buffers.gpu_buffers.frames import DeviceFrames

READERS = {
    "none": (NoneOnDevice, "decode", {}),
    "rle": (RleOnDevice, "decode", {}),
    "auto": (DeviceFrames, "read", {"layout": "frames"}),
}


@pytest.fixture
def reads(monkeypatch):
    """How often the device was asked, by codec."""
    counts = dict.fromkeys(READERS, 0)

    def counting(codec, work):
        def counted(*args):
            counts[codec] += 1
            return work(*args)

        return counted

    for codec, (kind, name, _) in READERS.items():
        monkeypatch.setattr(kind, name, counting(codec, getattr(kind, name)))
    return counts


def buffer_of(codec, space=SPACES["large"]):
    options = {"compression_method": codec, "decode_on": "device", "prefetch": True, **READERS[codec][2]}
    return GpuReplayBuffer(60, space, ACTIONS, "cpu", 2, **options)


@pytest.mark.parametrize("name", ["image", "large"])
@pytest.mark.parametrize("codec", READERS)
def test_batches_are_those_of_the_core_and_are_read_on_the_device(codec, name, reads, play, same_batches):
    ours = buffer_of(codec, SPACES[name])
    core = CompressedReplayBuffer(60, SPACES[name], ACTIONS, "cpu", 2, compression_method=codec, prefetch=True)
    for steps in (1, 20, 40):
        play([ours, core], steps, seed=steps)
        for seed in range(3):
            same_batches(ours, core, seed=seed)
    assert reads[codec] >= 3  # what waits to be compressed, or to be known as a stack, is at hand without it


@pytest.mark.parametrize("codec", ["none", "rle"])
def test_rollouts_are_those_of_the_core_and_are_read_on_the_device(codec, reads, roll, same_rollout):
    options = {"n_envs": 3, "compression_method": codec, "prefetch": True}
    ours = GpuRolloutBuffer(16, SPACES["image"], ACTIONS, "cpu", decode_on="device", **options)
    core = CompressedRolloutBuffer(16, SPACES["image"], ACTIONS, "cpu", **options)
    roll([ours, core])
    same_rollout(ours, core)
    assert reads[codec] == 4


@pytest.mark.parametrize("route", [lambda buffer: pickle.loads(pickle.dumps(buffer)), copy.deepcopy])
def test_what_was_read_ahead_is_saved_where_every_machine_can_load_it(route, play):
    ours = buffer_of("rle")
    play([ours], 20)
    ours.sample(7)
    ours._storage.worker.wait()

    _, arrays = ours.__getstate__()["ahead"]
    on_host = [array.shape for array in arrays.values() if isinstance(array, np.ndarray)]
    assert on_host.count((7, 1, 70, 70)) == 2  # observations and next observations
    twin = route(ours)
    play([ours], 20, seed=1)  # what was drawn is handed out as it was
    np.random.seed(0)
    expected = ours.sample(7)
    np.random.seed(0)
    expect_equal(twin.sample(7), expected)
    assert not th.equal(twin.sample(7).observations, expected.observations)
