"""Buffers on a device that were saved and loaded: the same batches, wherever payloads were and will be."""

import numpy as np
import pytest
import torch as th
from gpu_player import ACTIONS, SPACES
from gymnasium import spaces
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer, RolloutBuffer

from sb3_extra_buffers.checkpoints import read_manifest
from sb3_extra_buffers.compressed import CompressedReplayBuffer
from sb3_extra_buffers.errors import FileContentError
from sb3_extra_buffers.gpu_buffers import GpuDictReplayBuffer, GpuReplayBuffer, GpuRolloutBuffer, devices

IMAGE = SPACES["image"]
DICT = spaces.Dict({"image": IMAGE, "vector": SPACES["vector"]})
OPTIONS = [
    {"compression_method": "none"},
    {"compression_method": "rle", "decode_on": "device"},
    {"compression_method": "gzip", "heap_bytes": 1 << 20},
    {"compression_method": "auto", "layout": "frames", "decode_on": "device"},
    {"compression_method": "auto", "layout": "frames", "heap_bytes": 1 << 20},
]
each_option = pytest.mark.parametrize("options", OPTIONS, ids=str)


@pytest.fixture(params=["host", "elsewhere"])
def memory(request, monkeypatch):
    """Memory that the host sees, and memory that it does not."""
    if request.param == "elsewhere":
        monkeypatch.setattr(devices, "is_host", lambda device: False)
        monkeypatch.setattr(devices, "on_host", th.clone)


@each_option
def test_a_replay_buffer_goes_on_with_the_same_batches(options, memory, tmp_path, play, same_batches):
    ours = GpuReplayBuffer(40, IMAGE, ACTIONS, "cpu", 2, **options)
    theirs = ReplayBuffer(40, IMAGE, ACTIONS, "cpu", 2)
    for seed, steps in enumerate((7, 30, 55)):
        play([ours, theirs], steps, seed=seed)
        ours.save(tmp_path / "checkpoint")
        ours = GpuReplayBuffer.load(tmp_path / "checkpoint", "cpu", verify=True)
        same_batches(ours, theirs)
    assert ours.shared_heap is None or ours.shared_heap.device == th.device("cpu")


def test_a_budget_drops_the_same_transitions(memory, tmp_path, play):
    pair = [
        GpuReplayBuffer(400, IMAGE, ACTIONS, "cpu", 1, compression_method="gzip", heap_bytes=9_000, on_full="evict")
        for _ in range(2)
    ]
    for seed in range(4):
        play(pair, 60, seed=seed)
        pair[1].save(tmp_path / "checkpoint")
        pair[1] = GpuReplayBuffer.load(tmp_path / "checkpoint", "cpu")
        assert pair[0].shared_heap.evicted == pair[1].shared_heap.evicted
        assert pair[0]._kept_rows() == pair[1]._kept_rows() < 400
        batches = []
        for buffer in pair:
            np.random.seed(seed)
            batches.append(buffer.sample(50))
        assert th.equal(batches[0].observations, batches[1].observations)
        assert th.equal(batches[0].next_observations, batches[1].next_observations)
    assert pair[0].shared_heap.evicted.cells


@pytest.mark.parametrize(("layout", "heap_bytes"), [("cells", 9_000), ("frames", 45_000)])
@pytest.mark.parametrize(("factor", "is_large_enough"), [(0.4, False), (1.07, True), (1.5, True)])
def test_a_budget_that_is_not_the_one_that_was_saved_loads_all_or_nothing(
    layout, heap_bytes, factor, is_large_enough, memory, tmp_path, play
):
    codec = "gzip" if layout == "cells" else "auto"
    options = {"compression_method": codec, "layout": layout, "heap_bytes": heap_bytes, "on_full": "evict"}
    ours = GpuReplayBuffer(400, IMAGE, ACTIONS, "cpu", 1, **options)
    play([ours], 200)
    assert ours.shared_heap.evicted.cells
    ours.save(tmp_path / "checkpoint")
    manifest = read_manifest(tmp_path / "checkpoint")
    manifest.about["arguments"]["heap_bytes"] = int(factor * heap_bytes)
    manifest.write(tmp_path / "checkpoint")
    if not is_large_enough:
        with pytest.raises(FileContentError, match="bytes of payloads were saved, the capacity is"):
            GpuReplayBuffer.load(tmp_path / "checkpoint", "cpu")
        return
    for _ in range(2):
        again = GpuReplayBuffer.load(tmp_path / "checkpoint", "cpu", verify=True)
        assert again._kept_rows() == ours._kept_rows()
        batches = []
        for buffer in (ours, again):
            np.random.seed(0)
            batches.append(buffer.sample(100))
        assert th.equal(batches[0].observations, batches[1].observations)
        assert th.equal(batches[0].next_observations, batches[1].next_observations)
        again.save(tmp_path / "checkpoint")


def test_keys_and_rollouts(tmp_path, play, roll, same_batches, same_rollout):
    ours = GpuDictReplayBuffer(40, DICT, ACTIONS, "cpu", 2, compression_method="rle")
    theirs = DictReplayBuffer(40, DICT, ACTIONS, "cpu", 2)
    play([ours, theirs], 55)
    ours.save(tmp_path / "replay")
    same_batches(GpuDictReplayBuffer.load(tmp_path / "replay", "cpu"), theirs)
    ours = GpuRolloutBuffer(13, IMAGE, ACTIONS, "cpu", n_envs=2, compression_method="rle")
    theirs = RolloutBuffer(13, IMAGE, ACTIONS, "cpu", n_envs=2)
    roll([ours, theirs])
    ours.save(tmp_path / "rollout")
    same_rollout(GpuRolloutBuffer.load(tmp_path / "rollout", "cpu"), theirs)


def test_a_device_that_is_absent_is_replaced_by_the_cpu_with_a_word(tmp_path, play, same_batches):
    ours = GpuReplayBuffer(40, IMAGE, ACTIONS, "cpu", 2, compression_method="rle")
    theirs = ReplayBuffer(40, IMAGE, ACTIONS, "cpu", 2)
    play([ours, theirs], 30)
    ours.save(tmp_path / "checkpoint")
    manifest = read_manifest(tmp_path / "checkpoint")
    manifest.about["arguments"]["buffer_device"] = "cuda:7" if th.cuda.is_available() else "cuda"
    manifest.write(tmp_path / "checkpoint")
    with pytest.warns(UserWarning, match="kept on the CPU"):
        same_batches(GpuReplayBuffer.load(tmp_path / "checkpoint", "cpu"), theirs)
    same_batches(GpuReplayBuffer.load(tmp_path / "checkpoint", "cpu", buffer_device="cpu"), theirs)


def test_a_buffer_of_another_place_is_refused(tmp_path, play):
    ours = CompressedReplayBuffer(40, IMAGE, ACTIONS, "cpu", 2)
    play([ours], 5)
    ours.save(tmp_path / "checkpoint")
    loaded = "expected a GpuReplayBuffer, found a CompressedReplayBuffer"
    with pytest.raises(FileContentError, match=loaded):
        GpuReplayBuffer.load(tmp_path / "checkpoint", "cpu")


class OwnGpuReplayBuffer(GpuReplayBuffer):
    """A class outside of the library that keeps nothing more."""


def test_a_subclass_that_adds_nothing_is_saved(tmp_path, play):
    buffer = OwnGpuReplayBuffer(40, IMAGE, ACTIONS, "cpu", 2)
    play([buffer], 7)
    buffer.sample(5)
    buffer.save(tmp_path / "checkpoint")
    assert OwnGpuReplayBuffer.load(tmp_path / "checkpoint", "cpu").size() == 7


@pytest.mark.parametrize("room", [{}, {"heap_bytes": 1 << 20}], ids=["growing", "ring"])
@pytest.mark.parametrize("layout", ["cells", "frames"])
@pytest.mark.parametrize("change", [lambda buffer: buffer.to("cpu"), lambda buffer: buffer.shared_heap.compact()])
def test_what_was_moved_between_two_saves_is_saved_as_it_is(room, layout, change, tmp_path, same_batches):
    """Payloads have other positions then, and what was saved before must not pass for them."""
    random = np.random.default_rng(0)
    ours = GpuReplayBuffer(100, IMAGE, ACTIONS, "cpu", compression_method="auto", layout=layout, **room)

    def add(steps):
        for obs, next_obs in random.integers(256, size=(steps, 2, 1, *IMAGE.shape), dtype=np.uint8):
            ours.add(obs, next_obs, np.zeros(1), np.zeros(1), np.zeros(1), [{}])

    add(150)
    ours.save(tmp_path / "checkpoint")
    add(30)
    change(ours)
    ours.save(tmp_path / "checkpoint")
    same_batches(GpuReplayBuffer.load(tmp_path / "checkpoint", "cpu"), ours, size=300)


def test_a_checkpoint_from_when_evicting_was_the_default_can_be_loaded(tmp_path, play, same_batches):
    ours = GpuReplayBuffer(40, IMAGE, ACTIONS, "cpu", 2)
    play([ours], 30)
    ours.save(tmp_path / "checkpoint")
    manifest = read_manifest(tmp_path / "checkpoint")
    assert manifest.about["arguments"]["heap_bytes"] is None
    manifest.about["arguments"]["on_full"] = "evict"
    manifest.write(tmp_path / "checkpoint")
    same_batches(GpuReplayBuffer.load(tmp_path / "checkpoint", "cpu"), ours)
