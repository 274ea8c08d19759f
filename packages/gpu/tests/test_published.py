"""What was wrong in the published package, and is not any more."""

from itertools import pairwise

import numpy as np
import pytest
import torch as th
from gpu_player import ACTIONS
from gymnasium import spaces

from sb3_extra_buffers import codecs
from sb3_extra_buffers.errors import DeviceError, ObservationError, PayloadError
from sb3_extra_buffers.gpu_buffers import GpuReplayBuffer, find_gpu_buffer_dtypes

SCREEN = spaces.Box(0, 255, (84, 84, 4), np.uint8)


def add(buffer, obs, next_obs=None):
    obs = np.asarray(obs, buffer.observation_space.dtype)[np.newaxis]
    following = obs if next_obs is None else np.asarray(next_obs, buffer.observation_space.dtype)[np.newaxis]
    buffer.add(obs, following, np.zeros(1), np.zeros(1), np.zeros(1), [{}])


def one(space, codec, **options):
    return GpuReplayBuffer(8, space, ACTIONS, "cpu", compression_method=codec, **options)


@pytest.mark.parametrize("decode_on", ["host", "device"])
def test_floats_keep_their_fractions(decode_on):
    values = np.array([0.5, -1.75, 3.25, -0.0], np.float32)
    dtypes = find_gpu_buffer_dtypes((4,), th.float32)
    ours = one(spaces.Box(-10, 10, (4,), np.float32), "rle", dtypes=dtypes, decode_on=decode_on)
    add(ours, values)
    assert ours.sample(1).observations.numpy().tobytes() == values.tobytes()


def test_what_is_reconstructed_is_what_was_written_last():
    ours = GpuReplayBuffer(1, SCREEN, ACTIONS, "cpu", compression_method="rle")
    for value in (1, 9):
        add(ours, np.full(SCREEN.shape, value))
        assert set(ours.reconstruct_obs(0, 0).tolist()) == {value}


@pytest.mark.parametrize("codec", codecs.names())
def test_noise_can_be_stored_with_every_codec(codec):
    noise = np.random.default_rng(0).integers(256, size=(3, *SCREEN.shape), dtype=np.uint8)
    ours = one(SCREEN, codec)
    for obs, next_obs in pairwise(noise):
        add(ours, obs, next_obs)
    assert ours.reconstruct_nextobs(1, 0).numpy().tobytes() == noise[2].tobytes()


@pytest.mark.parametrize("codec", ["none", "rle", "gzip"])
@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(0, 255, (0,), np.uint8),
        spaces.Box(0, 60000, (5,), np.uint16),
        spaces.MultiBinary(4),
        spaces.Box(-1, 1, (3,), np.float16),
        spaces.Box(0, 255, (210, 160, 3), np.uint8),
    ],
    ids=["empty", "uint16", "binary", "float16", "large"],
)
def test_every_kind_of_observation(codec, space):
    ours = one(space, codec)
    value = np.ones(space.shape, space.dtype)
    add(ours, value, value * 0)
    batch = ours.sample(4)
    assert all(row.numpy().tobytes() == value.tobytes() for row in batch.observations)
    assert all(row.numpy().tobytes() == (value * 0).tobytes() for row in batch.next_observations)


def test_a_dtype_that_torch_does_not_have():
    with pytest.raises(DeviceError, match="torch has no dtype"):
        one(spaces.Box(-1, 1, (3,), np.longdouble), "none")


def test_values_that_do_not_fit_are_refused_and_nothing_is_stored():
    ours = one(spaces.Box(-1000, 1000, (3,), np.int64), "none", dtypes=th.uint8)
    with pytest.raises(ObservationError, match="300"):
        add(ours, [1, 2, 300])
    assert (ours.pos, ours.shared_heap.live) == (0, 0)


@pytest.mark.parametrize("level", ["gzip10", "zstd23", "lz4-block/13", "igzip4"])
def test_levels_out_of_range_are_value_errors(level):
    if level.rstrip("0123456789/") not in codecs.names():
        pytest.skip("the codec is not installed")
    with pytest.raises(ValueError, match="level"):
        one(SCREEN, level)


def test_a_codec_without_a_path_on_the_device_asked_for_explicitly():
    with pytest.raises(DeviceError, match=r"'gzip' has no path on a device.*lz4-block, none, rle"):
        one(SCREEN, "gzip", decode_on="device")


@pytest.mark.parametrize("decode_on", ["host", "device"])
def test_a_damaged_payload_is_an_error(decode_on):
    ours = one(SCREEN, "rle", decode_on=decode_on)
    frame = np.repeat(np.arange(84, dtype=np.uint8), 84 * 4).reshape(SCREEN.shape)
    for _ in range(6):  # the newest wait, uncompressed
        add(ours, frame, frame[::-1])
    heap = ours.shared_heap
    starts, lengths = heap.locate(np.array([0]))
    (payload,) = heap.slices(starts, lengths)
    payload[: len(payload) // 2] = 255
    with pytest.raises(PayloadError, match="rle"):
        ours.reconstruct_obs(0, 0)
