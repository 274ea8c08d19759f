"""Where the published package stored or returned wrong data; each rule begins with the number of the bug."""

import numpy as np
import pytest
import torch as th
from gymnasium import spaces

from sb3_extra_buffers import codecs
from sb3_extra_buffers.compressed import (
    CompressedDictReplayBuffer,
    CompressedDictRolloutBuffer,
    CompressedReplayBuffer,
    CompressedRolloutBuffer,
    find_buffer_dtypes,
)
from sb3_extra_buffers.errors import ObservationError, ParameterError

ACTIONS = spaces.Discrete(2)
FRAMES = spaces.Box(0, 255, (84, 84), np.uint8)
every_codec = pytest.mark.parametrize("codec", [*codecs.names(), "auto"])


@every_codec
def test_a2_floats_keep_their_fractions_and_signs(codec, one_by_one, expect_bits):
    space = spaces.Box(-np.inf, np.inf, (4,), np.float32)
    values = np.array([[0.1, -0.9, 1.7, -3.2], [1e-30, 1e30, 255.5, -256.5]], np.float32)
    obs, next_obs = one_by_one(space, values, codec)
    expect_bits(obs, values)
    expect_bits(next_obs, values[[1, 0]])


def test_a2_bytes_asked_for_floats_are_not_used_and_the_user_is_told(one_by_one, expect_bits):
    space = spaces.Box(-np.inf, np.inf, (4,), np.float32)
    values = np.array([[0.1, -0.9, 1.7, -3.2]], np.float32)
    with pytest.warns(
        UserWarning, match=r"dtypes asks for uint8, which cannot hold observations of float32.*losslessly"
    ):
        obs, _ = one_by_one(space, values, dtypes={"elem_type": np.uint8, "runs_type": np.uint16})
    expect_bits(obs, values)


@every_codec
def test_a3_integers_never_wrap(codec, one_by_one, expect_bits):
    space = spaces.Box(-1000, 1000, (6,), np.int64)
    values = np.array([[-1, 0, 255, 256, 300, 1000], [-1000, 1, 2, 3, 4, 5]])
    expect_bits(one_by_one(space, values, codec)[0], values)


def test_a3_a_narrower_dtype_is_stored_and_what_it_cannot_hold_is_refused_at_add(add, expect_bits):
    space = spaces.Box(-1000, 1000, (600,), np.int64)
    buffer = CompressedReplayBuffer(4, space, ACTIONS, dtypes={"elem_type": np.uint8}, compression_method="none")
    fits = np.arange(600).reshape(1, 600) % 256
    add(buffer, fits)
    assert buffer.memory_report().live_nbytes == 2 * 600  # and not 8 times as much; the next observation waits
    with pytest.raises(
        ObservationError, match=r"obs is int64 with the value 256 in it .*uint8: integers from 0 to 255"
    ):
        add(buffer, fits + 1)
    assert buffer.size() == 1
    add(buffer, fits[:, ::-1])
    assert buffer.size() == 2
    expect_bits(buffer.reconstruct_obs(0), fits[0])
    expect_bits(buffer.reconstruct_obs(1), fits[0, ::-1].copy())
    assert buffer.sample(1).observations.dtype == th.int64


@every_codec
@pytest.mark.parametrize(
    ("space", "values"),
    [
        (spaces.Discrete(500), [[300], [399]]),
        (spaces.MultiDiscrete([500, 1000, 2]), [[300, 999, 1], [499, 256, 0]]),
    ],
    ids=["Discrete", "MultiDiscrete"],
)
def test_a4_numbers_above_255_survive_in_discrete_spaces(space, values, codec, one_by_one):
    found, _ = one_by_one(space, np.array(values), codec)
    assert found.tolist() == values


@every_codec
@pytest.mark.parametrize("kind", [CompressedDictReplayBuffer, CompressedDictRolloutBuffer])
def test_a5_each_key_keeps_its_dtype_and_takes_no_more_than_that(kind, codec, add, expect_bits):
    space = spaces.Dict(image=FRAMES, vec=spaces.Box(-np.inf, np.inf, (3,), np.float32))
    dtypes = {"elem_type": np.uint8, "runs_type": np.uint16}  # one pair for all keys, as it had to be
    buffer = kind(2, space, ACTIONS, compression_method=codec, dtypes=dtypes)
    image = (np.arange(84 * 84).reshape(1, 84, 84) // 50 % 256).astype(np.uint8)
    vec = np.array([[0.5, -1.5, 300.25]], np.float32)
    for _ in range(2):
        add(buffer, {"image": image, "vec": vec})
    samples = next(buffer.get(2)) if isinstance(buffer, CompressedRolloutBuffer) else buffer.sample(2)
    expect_bits(samples.observations["image"].numpy(), image.repeat(2, axis=0))
    expect_bits(samples.observations["vec"].numpy(), vec.repeat(2, axis=0))
    raw = {key.key: key.raw_nbytes for key in buffer.memory_report().keys}
    assert raw["image"] / raw["vec"] == 84 * 84 / (3 * 4)


@every_codec
@pytest.mark.parametrize("dtypes", [None, np.uint8, {"elem_type": np.uint8, "runs_type": np.uint8}])
def test_a6_a_run_may_be_longer_than_any_type_that_was_asked_for(codec, dtypes, one_by_one, expect_bits):
    for shape in ((210, 160, 3), (84, 84)):
        space = spaces.Box(0, 255, shape, np.uint8)
        values = np.stack([np.full(shape, 7, np.uint8), np.zeros(shape, np.uint8)])
        values[1, -1, -1] = 9
        expect_bits(one_by_one(space, values, codec, dtypes=dtypes)[0], values)


@every_codec
def test_a7_infinities_zeros_and_nan_survive_bit_by_bit(codec, one_by_one, expect_bits):
    space = spaces.Box(-np.inf, np.inf, (100,), np.float32)
    special = np.array([np.inf, -np.inf, 0.0, -0.0, 0.0, -0.0, np.nan, -np.nan, 3.4028e38, 1e-45], np.float32)
    values = np.stack([special.repeat(10), np.tile(special, 10)])
    obs, next_obs = one_by_one(space, values, codec, dtypes=np.float32)
    expect_bits(obs, values)
    expect_bits(next_obs, values[[1, 0]])


@pytest.mark.parametrize(
    "codec", [f"{name}/1" for name in sorted({"gzip", "igzip", "zstd", "lz4-frame"} & {*codecs.names()})]
)
def test_a9_dictionaries_of_the_caller_are_never_changed(codec, add):
    dtypes, kwargs = find_buffer_dtypes((84, 84)), {}
    given = [dtypes, kwargs, {"capacity": 1 << 20}, {**dtypes}]
    before = [dict(part) for part in given]
    for kind in (CompressedReplayBuffer, CompressedRolloutBuffer):
        buffer = kind(
            4,
            FRAMES,
            ACTIONS,
            dtypes=dtypes,
            compression_method=codec,
            compression_kwargs=kwargs,
            decompression_kwargs=given[3],
            heap="ring",
            heap_kwargs=given[2],
        )
        add(buffer, np.zeros((1, 84, 84), np.uint8))
        assert given == before
    # The level of one buffer is not that of the next one, which is made with the same dictionary.
    plain = CompressedReplayBuffer(4, FRAMES, ACTIONS, dtypes=dtypes, compression_method="rle")
    add(plain, np.zeros((1, 84, 84), np.uint8))
    default, asked = (
        CompressedReplayBuffer(4, FRAMES, ACTIONS, dtypes=dtypes, compression_method=method, layout="cells")
        for method in (codec.split("/")[0], codec)
    )
    assert default.observations.codec != asked.observations.codec == codec


@every_codec
def test_a10_what_is_reconstructed_is_what_is_stored_now(codec, add):
    buffer = CompressedReplayBuffer(1, FRAMES, ACTIONS, compression_method=codec)
    for value in (1, 9, 200):
        add(buffer, np.full((1, 84, 84), value, np.uint8), np.full((1, 84, 84), value + 1, np.uint8))
        assert (buffer.reconstruct_obs(0, 0) == value).all()
        assert (buffer.reconstruct_nextobs(0, 0) == value + 1).all()
        buffer.reconstruct_obs(0, 0)[:] = 77  # it belongs to who asked for it


def test_a10_rollouts_are_reconstructed_anew_too(add):
    buffer = CompressedRolloutBuffer(1, FRAMES, ACTIONS, compression_method="rle")
    for value in (1, 9):
        buffer.reset()
        add(buffer, np.full((1, 84, 84), value, np.uint8))
        assert (buffer.reconstruct_obs(0) == value).all()


def test_a14_parameters_of_the_codec_do_not_replace_dtypes(one_by_one, expect_bits):
    space = spaces.Box(-np.inf, np.inf, (300,), np.float32)
    values = np.linspace(-5, 5, 600, dtype=np.float32).reshape(2, 300)
    dtypes = find_buffer_dtypes((300,), np.float32, "gzip")
    expect_bits(one_by_one(space, values, "gzip", dtypes=dtypes, compression_kwargs={"compresslevel": 1})[0], values)


@pytest.mark.parametrize("codec", codecs.names())
def test_a14_a_parameter_that_the_codec_does_not_know_is_refused_at_once(codec):
    with pytest.raises(ParameterError, match="foo=1 is not allowed"):
        CompressedReplayBuffer(4, FRAMES, ACTIONS, compression_method=codec, compression_kwargs={"foo": 1})
    with pytest.raises(ParameterError, match=r"decompression_kwargs=\{'foo': 1\} is not allowed"):
        CompressedRolloutBuffer(4, FRAMES, ACTIONS, compression_method=codec, decompression_kwargs={"foo": 1})


@pytest.mark.parametrize("kind", [CompressedReplayBuffer, CompressedRolloutBuffer])
@pytest.mark.parametrize("shape", [(1, 7), (7,), (1, 3), (3,), (2, 7), (6,)])
def test_a16_an_observation_of_another_shape_is_refused_at_add(kind, shape, add):
    buffer = kind(4, spaces.Box(0, 255, (3,), np.uint8), ACTIONS, n_envs=2)
    with pytest.raises(ObservationError, match=r"obs is of shape .*, expected shape \(2, 3\)"):
        add(buffer, np.zeros(shape, np.uint8))
    assert buffer.pos == 0
    add(buffer, np.zeros((2, 3), np.uint8))


def test_a_batch_has_the_dtype_of_the_space_with_every_codec(add):
    space = spaces.Box(-1000, 1000, (6,), np.int64)
    for codec in codecs.names():
        buffer = CompressedReplayBuffer(2, space, ACTIONS, compression_method=codec, dtypes=np.int16)
        add(buffer, np.arange(6).reshape(1, 6))
        assert buffer.sample(1).observations.dtype == th.int64, codec
