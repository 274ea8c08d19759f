"""``decode_on="device"`` never decodes on the host in silence, and never makes a buffer unreadable."""

import copy
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import torch as th
from gpu_player import ACTIONS, SPACES
from gymnasium import spaces
from stable_baselines3.common.buffers import ReplayBuffer

from sb3_extra_buffers import codecs
from sb3_extra_buffers.checkpoints import read_manifest
from sb3_extra_buffers.errors import DeviceError
from sb3_extra_buffers.gpu_buffers import GpuReplayBuffer
from sb3_extra_buffers.gpu_buffers.codecs import nvcomp
from sb3_extra_buffers.stores.chunks import ChunkStore

IMAGE = SPACES["image"]
SCREEN = spaces.Box(0, 255, (4, 30, 30), np.uint8)
ABSENT = "cuda:7" if th.cuda.is_available() else "cuda"
needs_zstd = pytest.mark.skipif("zstd" not in codecs.names(), reason="zstd is not installed")


class OnDevice:
    """Decodes on the CPU as if it were a device that nvCOMP knows."""

    def __init__(self, codec):
        self._codec = codec

    def decode(self, heap, starts, lengths, out, /):
        for payload, row in zip(heap.slices(starts, lengths), out):
            self._codec.decode_into(payload.numpy(), row.numpy())


@pytest.fixture
def pair(monkeypatch, play):
    """A buffer on a device with nvCOMP, and Stable-Baselines3's own beside it; and how to lose that device."""
    monkeypatch.setattr(nvcomp, "nvcomp_codec", lambda codec, *_: OnDevice(codec))
    ours = GpuReplayBuffer(40, IMAGE, ACTIONS, "cpu", 2, compression_method="zstd", decode_on="device")
    theirs = ReplayBuffer(40, IMAGE, ACTIONS, "cpu", 2)
    play([ours, theirs], 55)
    return SimpleNamespace(ours=ours, theirs=theirs, lose=monkeypatch.undo)


@needs_zstd
def test_a_move_to_where_a_codec_has_no_path_is_refused_before_anything_moves(pair, same_batches):
    same_batches(pair.ours, pair.theirs)
    heap, moved = pair.ours.shared_heap, pair.ours.shared_heap._relocations
    pair.lose()
    with pytest.raises(
        DeviceError, match=r"decode_on='device' is not possible there .*load it with this buffer_device"
    ):
        pair.ours.to("cpu")
    assert (pair.ours.shared_heap, heap._relocations) == (heap, moved)
    same_batches(pair.ours, pair.theirs)


@needs_zstd
def test_a_pickle_of_a_device_that_is_absent_is_decoded_as_pays(pair, same_batches):
    pair.ours.shared_heap.device = th.device(ABSENT)
    pickled = pickle.dumps(pair.ours)
    pair.lose()
    with (
        pytest.warns(UserWarning, match="kept on the CPU"),
        pytest.warns(UserWarning, match="goes on with decode_on='auto'"),
    ):
        found = pickle.loads(pickled)
    same_batches(found, pair.theirs)
    assert found._arguments()["decode_on"] == "auto"
    same_batches(found.to("cpu"), pair.theirs)
    same_batches(copy.deepcopy(found), pair.theirs)


@needs_zstd
def test_a_checkpoint_of_a_device_that_is_absent_is_decoded_as_pays(pair, tmp_path, same_batches):
    pair.ours.save(tmp_path / "checkpoint")
    manifest = read_manifest(tmp_path / "checkpoint")
    manifest.about["arguments"]["buffer_device"] = ABSENT
    manifest.write(tmp_path / "checkpoint")
    pair.lose()
    with pytest.warns(UserWarning, match=r"kept on the CPU.*goes on with decode_on='auto'"):
        found = GpuReplayBuffer.load(tmp_path / "checkpoint", "cpu")
    same_batches(found, pair.theirs)
    # Who asks for it again is told.
    with (
        pytest.warns(UserWarning, match="kept on the CPU"),
        pytest.raises(DeviceError, match="NVIDIA devices only"),
    ):
        GpuReplayBuffer.load(tmp_path / "checkpoint", "cpu", decode_on="device")


def test_where_the_device_is_there_it_stays_the_device(play):
    ours = GpuReplayBuffer(40, IMAGE, ACTIONS, "cpu", 2, compression_method="rle", decode_on="device")
    play([ours], 5)
    for twin in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours)), ours.to("cpu")):
        assert twin._arguments()["decode_on"] == "device"
        assert twin._storage.reader.decode_on == "device"


@pytest.mark.parametrize("prefer", ["balanced", "memory"])
def test_frames_that_go_through_a_codec_are_refused(prefer):
    options = {"compression_method": "auto", "layout": "frames", "prefer": prefer}
    with pytest.raises(DeviceError, match=f"prefer='{prefer}'.*go through a codec.*prefer='speed'"):
        GpuReplayBuffer(40, SCREEN, ACTIONS, "cpu", decode_on="device", **options)
    GpuReplayBuffer(40, SCREEN, ACTIONS, "cpu", decode_on="auto", **options)


def test_frames_with_a_codec_of_their_own_are_refused():
    with pytest.raises(DeviceError, match=r"the codec 'rle'.*go through a codec"):
        GpuReplayBuffer(40, SCREEN, ACTIONS, "cpu", compression_method="rle", layout="frames", decode_on="device")


def noisy(steps):
    """Frames that patches do not make small, and a codec would."""
    return np.random.default_rng(0).integers(0, 4, (steps + 5, 30, 30), np.uint8)


def fill(buffers, steps):
    frames = noisy(steps)
    for step in range(steps):
        pair = (frames[step + then : step + then + 4][np.newaxis] for then in (0, 1))
        step = *pair, np.zeros(1), np.zeros(1), np.zeros(1), [{}]
        for buffer in buffers:
            buffer.add(*step)


@pytest.mark.parametrize("method", ["auto", "none"])
def test_frames_never_come_by_way_of_a_codec(method, monkeypatch, same_batches):
    ours = GpuReplayBuffer(300, SCREEN, ACTIONS, "cpu", compression_method=method, layout="frames", decode_on="device")
    theirs = ReplayBuffer(300, SCREEN, ACTIONS, "cpu")
    fill([ours, theirs], 200)

    def decompressed(_, slots, *__):
        raise AssertionError(f"chunks {slots} were decompressed by the host")

    chunks = ours._storage.observations[""].store.chunks
    assert chunks.are_plain(np.arange(chunks.slots)).all()
    monkeypatch.setattr(ChunkStore, "_bound", decompressed)
    same_batches(ours, theirs, size=150)


def test_saved_frames_that_went_through_a_codec_are_not_loaded_for_the_device(tmp_path, same_batches):
    ours = GpuReplayBuffer(300, SCREEN, ACTIONS, "cpu", compression_method="auto", layout="frames")
    theirs = ReplayBuffer(300, SCREEN, ACTIONS, "cpu")
    fill([ours, theirs], 200)
    ours.save(tmp_path / "checkpoint")
    with pytest.raises(DeviceError, match=r"went through a codec.*Load it with decode_on='auto'"):
        GpuReplayBuffer.load(tmp_path / "checkpoint", "cpu", decode_on="device")
    same_batches(GpuReplayBuffer.load(tmp_path / "checkpoint", "cpu"), theirs)
