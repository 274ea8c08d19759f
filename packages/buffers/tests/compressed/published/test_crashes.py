"""Where the published package crashed; each rule begins with the number of the bug."""

import pickle
import warnings

import numpy as np
import pytest
import torch as th
from gymnasium import spaces

from sb3_extra_buffers import codecs
from sb3_extra_buffers.compressed import (
    CompressedArray,
    CompressedReplayBuffer,
    CompressedRolloutBuffer,
    find_buffer_dtypes,
)
from sb3_extra_buffers.errors import ObservationError

ACTIONS = spaces.Discrete(2)
FRAMES = spaces.Box(0, 255, (84, 84), np.uint8)
every_codec = pytest.mark.parametrize("codec", [*codecs.names(), "auto"])


@every_codec
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int16, np.int64, np.uint32])
def test_b1_elements_of_several_bytes_are_read_back_by_every_codec(codec, dtype, one_by_one, expect_bits):
    limits = (-np.inf, np.inf) if np.dtype(dtype).kind == "f" else (0, 1000)
    space = spaces.Box(*limits, (200,), dtype)
    values = (np.arange(400).reshape(2, 200) // 7).astype(dtype)
    expect_bits(one_by_one(space, values, codec, dtypes=find_buffer_dtypes((200,), dtype))[0], values)


@pytest.mark.parametrize("kind", [CompressedReplayBuffer, CompressedRolloutBuffer])
@pytest.mark.parametrize("output_dtype", ["raw", "float"])
def test_b2_normalized_images_are_float32_from_0_to_1(kind, output_dtype, add):
    buffer = kind(2, FRAMES, ACTIONS, normalize_images=True, output_dtype=output_dtype)
    image = (np.arange(84 * 84).reshape(1, 84, 84) % 256).astype(np.uint8)
    for _ in range(2):
        add(buffer, image)
    samples = next(buffer.get(2)) if isinstance(buffer, CompressedRolloutBuffer) else buffer.sample(2)
    assert samples.observations.dtype == th.float32
    assert (samples.observations == th.as_tensor(image, dtype=th.float32) / 255).all()
    assert (samples.observations.min(), samples.observations.max()) == (0, 1)
    if hasattr(samples, "next_observations"):
        assert (samples.next_observations == samples.observations).all()


def test_b2_without_it_images_keep_their_dtype_and_float_means_float32(add):
    for output_dtype, dtype in (("raw", th.uint8), ("float", th.float32)):
        buffer = CompressedReplayBuffer(2, FRAMES, ACTIONS, output_dtype=output_dtype)
        add(buffer, np.full((1, 84, 84), 200, np.uint8))
        observations = buffer.sample(3).observations
        assert observations.dtype == dtype
        assert (observations == 200).all()


@pytest.mark.parametrize("codec", codecs.names())
def test_b11_arrays_take_slices_rows_and_lists_and_pickle(codec, expect_bits):
    array, plain = CompressedArray((4, 2), np.uint8, (3,), compression_method=codec), np.zeros((4, 2, 3), np.uint8)
    for key in (1, (2, 1), slice(1, 3), [0, 3], (slice(None), 1), (..., 0)):
        array[key] = plain[key] = np.arange(plain[key].size).reshape(plain[key].shape)
        expect_bits(array[key], plain[key].copy())
    expect_bits(np.asarray(pickle.loads(pickle.dumps(array))), plain)


def test_b11_an_array_works_on_after_an_error():
    array = CompressedArray((4,), np.uint8, (3,), compression_method="rle")
    array[0] = [1, 2, 3]
    with pytest.raises(ObservationError):
        array[0] = [1, 2, 3, 4]
    with pytest.raises(IndexError):
        array[4]
    assert array[0].tolist() == [1, 2, 3]


@every_codec
@pytest.mark.parametrize(
    ("space", "values"),
    [
        (spaces.Box(0, 255, (0,), np.uint8), np.zeros((2, 0), np.uint8)),
        (spaces.Box(0, 255, (3, 0), np.float32), np.zeros((2, 3, 0), np.float32)),
        (spaces.Box(-5, 5, (), np.float32), np.array([1.5, -2.5], np.float32)),
        (spaces.Box(0, 1, (300,), np.bool_), np.arange(600).reshape(2, 300) % 7 == 0),
        (spaces.Box(-5, 5, (300,), np.float16), (np.arange(600).reshape(2, 300) // 90 / 2).astype(np.float16)),
    ],
    ids=["empty", "empty matrix", "0-d", "bool", "float16"],
)
def test_b12_rare_observations_are_stored_by_every_codec(codec, space, values, one_by_one, expect_bits):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="gymnasium")
        expect_bits(one_by_one(space, values, codec)[0], values)


def test_b12_bool_may_be_stored_for_what_is_0_or_1(one_by_one, expect_bits):
    space = spaces.Box(0, 1, (300,), np.uint8)
    values = (np.arange(600).reshape(2, 300) % 3 == 0).astype(np.uint8)
    expect_bits(one_by_one(space, values, "rle", dtypes={"elem_type": bool})[0], values)


def test_b14_the_name_of_a_codec_may_end_in_a_digit(install, one_by_one, expect_bits):
    source = """
        import bz2
        from sb3_extra_buffers.codecs import ByteCodec, CodecPlugin, Levels, hookimpl

        class Bz2(ByteCodec):
            library_errors = (OSError, ValueError)

            def compress(self, cell):
                return bz2.compress(cell, self.level)

            def decompress_into(self, payload, out):
                self.drain(bz2.BZ2Decompressor(), payload, out)

        @hookimpl
        def sb3_extra_buffers_codec():
            return CodecPlugin(protocol=1, factory=Bz2, summary="bzip2", levels=Levels(9, ((1, 9),)))
    """
    install("toy-dist", "toy2", "fake_toy2", source)
    values = (np.arange(2 * 84 * 84).reshape(2, 84, 84) // 500 % 256).astype(np.uint8)
    for name, bound in (("toy2", "toy2/9"), ("toy2/3", "toy2/3")):
        expect_bits(one_by_one(FRAMES, values, name)[0], values)
        assert bound in CompressedReplayBuffer(2, FRAMES, ACTIONS, compression_method=name).observations.codec
