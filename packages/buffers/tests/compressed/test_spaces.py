"""Every observation space and every kind of array that Stable-Baselines3 takes, beside its own buffers."""

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import DictReplayBuffer, DictRolloutBuffer, ReplayBuffer, RolloutBuffer

from sb3_extra_buffers.compressed import (
    CompressedDictReplayBuffer,
    CompressedDictRolloutBuffer,
    CompressedReplayBuffer,
    CompressedRolloutBuffer,
)

ROWS = 6
ACTIONS = spaces.Discrete(3)
FLOATS = ["float16", "float32", "float64"]
DTYPES = ["uint8", "int8", "uint16", "int32", "int64", *FLOATS, "bool"]
SHAPES = [(), (0,), (3,), (300,), (3, 8, 12), (24, 64, 3)]


def box(shape, dtype):
    if dtype == "bool":
        return spaces.Box(0, 1, shape, np.bool_)
    limits = np.finfo(dtype) if dtype in FLOATS else np.iinfo(dtype)
    return spaces.Box(limits.min, limits.max, shape, np.dtype(dtype).type)


MIXED = spaces.Dict(
    {
        **{f"{dtype} {shape}": box(shape, dtype) for dtype, shape in zip(DTYPES, [*SHAPES[1:], *SHAPES[1:]])},
        "discrete": spaces.Discrete(7, start=-3),
        "several": spaces.MultiDiscrete([3, 200, 5]),
        "bits": spaces.MultiBinary(9),
        "rows of bits": spaces.MultiBinary([40, 9]),
    }
)
SPACES = {
    **{f"{dtype} {shape}": box(shape, dtype) for dtype in DTYPES for shape in SHAPES},
    **{name: MIXED[name] for name in ("discrete", "several", "bits", "rows of bits")},
    "mixed": MIXED,
}


@pytest.fixture
def replays():
    def replays(space, n_envs, **storage):
        is_dict = isinstance(space, spaces.Dict)
        theirs = DictReplayBuffer if is_dict else ReplayBuffer
        ours = CompressedDictReplayBuffer if is_dict else CompressedReplayBuffer
        size = ROWS * n_envs
        return (
            ours(size, space, ACTIONS, "cpu", n_envs=n_envs, **storage),
            theirs(size, space, ACTIONS, "cpu", n_envs=n_envs),
        )

    return replays


@pytest.fixture
def rollouts():
    def rollouts(space, n_envs, **storage):
        is_dict = isinstance(space, spaces.Dict)
        theirs = DictRolloutBuffer if is_dict else RolloutBuffer
        ours = CompressedDictRolloutBuffer if is_dict else CompressedRolloutBuffer
        return (
            ours(ROWS, space, ACTIONS, "cpu", n_envs=n_envs, **storage),
            theirs(ROWS, space, ACTIONS, "cpu", n_envs=n_envs),
        )

    return rollouts


def arrays(buffer, name="observations"):
    found = getattr(buffer, name)
    return {key: np.asarray(part) for key, part in found.items()} if isinstance(found, dict) else np.asarray(found)


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_a_replay_buffer_takes_every_space(space, codec, replays, walk, feed, same, same_samples):
    ours, theirs = replays(space, 3, compression_method=codec)
    for step in walk(space, ACTIONS, 3, ROWS + 2):
        feed(step, ours, theirs)
    for name in ("observations", "next_observations"):
        same(arrays(ours, name), arrays(theirs, name), name)
    if space.shape != ():  # of which Stable-Baselines3 cannot sample
        same_samples(ours, theirs, 16)


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
@pytest.mark.parametrize("method", ["auto", "gzip"])
def test_a_rollout_buffer_takes_every_space(space, method, rollouts, walk, same):
    ours, theirs = rollouts(space, 3, compression_method=method)
    for obs, _, action, reward, done, _ in walk(space, ACTIONS, 3, ROWS):
        for buffer in (ours, theirs):
            buffer.add(obs, action, reward, done, th.zeros(3), th.zeros(3))
    same(arrays(ours), arrays(theirs))
    found = []
    for buffer in (ours, theirs):
        np.random.seed(0)
        found.append(list(buffer.get(7)))
    same(*found)


def reversed_axes(array):
    return np.ascontiguousarray(array.T).T


def every_second(array):
    return np.repeat(array, 2, axis=-1)[..., ::2]


def backwards(array):
    return array[:, ::-1].copy()[:, ::-1]


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


FORMS = [np.asfortranarray, reversed_axes, every_second, backwards, read_only, th.as_tensor, np.ndarray.tolist]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(3, 8, 12), (5,)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_are_taken_in_any_form(form, shape, dtype, replays, walk, same, same_samples):
    ours, theirs = replays(box(shape, dtype), 3)
    for obs, next_obs, *rest in walk(ours.observation_space, ACTIONS, 3, ROWS + 2):
        ours.add(form(obs), form(next_obs), *rest)
        theirs.add(obs, next_obs, *rest)
    for name in ("observations", "next_observations"):
        same(arrays(ours, name), arrays(theirs, name), name)
    same_samples(ours, theirs, 16)


@pytest.mark.parametrize("form", FORMS)
def test_parts_of_dicts_are_taken_in_any_form(form, replays, rollouts, composite, draw, same):
    space = spaces.Dict({key: composite()[key] for key in ("scan", "image", "position")})
    rng = np.random.default_rng(0)
    (ours, theirs), (our_rollout, their_rollout) = replays(space, 3), rollouts(space, 3)
    for _ in range(ROWS):
        obs, next_obs = draw(space, rng, 3), draw(space, rng, 3)
        formed = [{key: form(part) for key, part in value.items()} for value in (obs, next_obs)]
        ours.add(*formed, np.zeros(3), np.zeros(3), np.zeros(3), [{}, {}, {}])
        theirs.add(obs, next_obs, np.zeros(3), np.zeros(3), np.zeros(3), [{}, {}, {}])
        our_rollout.add(formed[0], np.zeros(3), np.zeros(3), np.zeros(3), th.zeros(3), th.zeros(3))
        their_rollout.add(obs, np.zeros(3), np.zeros(3), np.zeros(3), th.zeros(3), th.zeros(3))
    for name in ("observations", "next_observations"):
        same(arrays(ours, name), arrays(theirs, name), name)
    same(arrays(our_rollout), arrays(their_rollout))


@pytest.mark.parametrize("dtype", ["uint8", "bool", "float16", "float32", "float64"])
@pytest.mark.parametrize("given", ["uint8", "bool", "int64", "float32", "float64"])
def test_values_that_fit_are_converted_as_by_the_original(dtype, given, replays, draw, same):
    ours, theirs = replays(box((300,), dtype), 3)
    obs = draw(spaces.MultiBinary(300), np.random.default_rng(0), 3).astype(given)
    for buffer in (ours, theirs):
        buffer.add(obs, obs, np.zeros(3), np.zeros(3), np.zeros(3), [{}, {}, {}])
    same(arrays(ours), arrays(theirs))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(3,), (300,), (2100,)])
def test_every_bit_of_a_float_survives(dtype, shape, codec, replays, rollouts, noise, same, same_samples):
    space, bits = box(shape, dtype), f"u{np.dtype(dtype).itemsize}"
    infinite, nan, minus = np.array([np.inf, np.nan, -0.0], dtype).view(bits)
    # Zeros, infinities, the smallest numbers, and NaN: with a sign, with a payload, signalling.
    odd = np.array([0, infinite, 1, nan, nan | 5, infinite | 1], bits)
    odd = np.concatenate([odd, odd | minus]).view(dtype)
    ours, theirs = replays(space, 3, compression_method=codec)
    our_rollout, their_rollout = rollouts(space, 3, compression_method=codec)
    rng = np.random.default_rng(0)
    for number in range(ROWS):
        obs = rng.choice(odd, (3, *shape)) if number % 2 else noise(space, rng, 3)
        for buffer in (ours, theirs):
            buffer.add(obs, np.flip(obs), np.zeros(3), np.zeros(3), np.zeros(3), [{}, {}, {}])
        for buffer in (our_rollout, their_rollout):
            buffer.add(obs, np.zeros(3), np.zeros(3), np.zeros(3), th.zeros(3), th.zeros(3))
    for name in ("observations", "next_observations"):
        same(arrays(ours, name), arrays(theirs, name), name)
    same(arrays(our_rollout), arrays(their_rollout))
    same_samples(ours, theirs, 32)
    np.random.seed(0)
    found = next(our_rollout.get())
    np.random.seed(0)
    same(found, next(their_rollout.get()))


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_next_observation_that_is_equal_but_not_the_same_is_kept_apart(dtype, codec, replays, same):
    ours, theirs = replays(box((300,), dtype), 1, compression_method=codec)
    zeros, nans = np.zeros((1, 300), dtype), np.full((1, 300), np.nan, dtype)
    for obs, next_obs in ((zeros, -zeros), (zeros, nans), (-nans, zeros), (-zeros, -nans), (nans, nans)):
        for buffer in (ours, theirs):
            buffer.add(obs, next_obs, np.zeros(1), np.zeros(1), np.zeros(1), [{}])
    for name in ("observations", "next_observations"):
        same(arrays(ours, name), arrays(theirs, name), name)
