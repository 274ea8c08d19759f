"""Scripts that were written for the published package run, and get what they meant to get."""

from itertools import pairwise

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3 import DQN, PPO

from sb3_extra_buffers import codecs
from sb3_extra_buffers.compressed import (
    CompressedArray,
    CompressedDictReplayBuffer,
    CompressedReplayBuffer,
    CompressedRolloutBuffer,
    DummyCls,
    find_buffer_dtypes,
    find_smallest_dtype,
)


def add(buffer, obs, next_obs):
    count = len(obs)
    buffer.add(obs, next_obs, np.zeros((count, 1)), np.zeros(count), np.zeros(count), [{}] * count)


@pytest.mark.parametrize("optimize", [False, True])
def test_observations_of_a_replay_buffer_are_reconstructed_by_place_and_environment(optimize):
    space = spaces.Box(0, 255, (20, 20), np.uint8)
    buffer = CompressedReplayBuffer(
        8, space, spaces.Discrete(2), n_envs=2, optimize_memory_usage=optimize, handle_timeout_termination=not optimize
    )
    frames = np.arange(2 * 400 * 4, dtype=np.int64).reshape(4, 2, 20, 20) // 7 % 256
    frames = frames.astype(np.uint8)
    for obs, next_obs in pairwise(frames):
        add(buffer, obs, next_obs)
    for idx in range(3):
        for env_idx in range(2):
            found = buffer.reconstruct_obs(idx, env_idx), buffer.reconstruct_nextobs(idx, env_idx)
            assert all(isinstance(part, np.ndarray) and part.dtype == np.uint8 for part in found)
            assert (found[0] == frames[idx, env_idx]).all()
            assert (found[1] == frames[idx + 1, env_idx]).all()
    with pytest.raises(IndexError):
        buffer.reconstruct_obs(4, 0)
    with pytest.raises(IndexError):
        buffer.reconstruct_obs(0, 2)


def test_observations_of_a_dict_buffer_are_reconstructed_with_their_keys():
    space = spaces.Dict(a=spaces.Box(0, 255, (20, 20), np.uint8), b=spaces.Discrete(9))
    buffer = CompressedDictReplayBuffer(4, space, spaces.Discrete(2))
    given = {"a": np.full((1, 20, 20), 7, np.uint8), "b": np.array([5])}
    add_dict = given, {"a": given["a"] + 1, "b": given["b"] + 1}
    buffer.add(*add_dict, np.zeros((1, 1)), np.zeros(1), np.zeros(1), [{}])
    obs, next_obs = buffer.reconstruct_obs(0, 0), buffer.reconstruct_nextobs(0, 0)
    assert list(obs) == list(next_obs) == ["a", "b"]
    assert (obs["a"] == 7).all()
    assert (next_obs["a"] == 8).all()
    assert (obs["b"].tolist(), next_obs["b"].tolist()) == ([5], [6])


def test_observations_of_a_rollout_are_reconstructed_in_the_order_of_the_batches():
    space = spaces.Box(0, 255, (20, 20), np.uint8)
    buffer = CompressedRolloutBuffer(3, space, spaces.Discrete(2), n_envs=2)
    for step in range(3):
        obs = np.array([10 * step, 10 * step + 1], np.uint8).reshape(2, 1, 1) * np.ones((1, 20, 20), np.uint8)
        buffer.add(obs, np.zeros((2, 1)), np.zeros(2), np.zeros(2), th.zeros(2), th.zeros(2))
    for _ in range(2):  # before and after the batches were made
        found = [buffer.reconstruct_obs(idx) for idx in range(6)]
        assert all(isinstance(part, th.Tensor) for part in found)
        assert [part[0, 0].item() for part in found] == [0, 10, 20, 1, 11, 21]
        list(buffer.get(2))
    assert (buffer.observations[4] == found[4].numpy()).all()


def test_memory_can_be_optimized_together_with_timeouts():
    buffer = CompressedReplayBuffer(
        4, spaces.Box(0, 255, (20, 20), np.uint8), spaces.Discrete(2), optimize_memory_usage=True
    )
    frames = [np.full((1, 20, 20), value, np.uint8) for value in range(3)]
    buffer.add(frames[0], frames[1], np.zeros((1, 1)), np.zeros(1), np.ones(1), [{"TimeLimit.truncated": True}])
    add(buffer, frames[2], frames[0])
    samples = buffer._get_samples(np.array([0, 1]))
    assert samples.next_observations[:, 0, 0].tolist() == [1, 0]
    assert samples.dones.tolist() == [[0], [0]]


@pytest.mark.parametrize(
    ("short", "long", "name"),
    [("igzip3", "igzip/3", "igzip"), ("zstd-5", "zstd/-5", "zstd"), ("gzip1", "gzip/1", "gzip")],
)
def test_shorthands_read_as_before(short, long, name):
    if name not in codecs.names():
        pytest.skip(f"needs the codec {name}")
    arrays = [CompressedArray(2, np.uint8, (300,), compression_method=method) for method in (short, long)]
    assert arrays[0].codec == arrays[1].codec == long


# Scripts as they were printed, with smaller numbers.


@pytest.mark.parametrize("compression", ["rle", "gzip1", "rle-jit", "zstd-5", "igzip1", "lz4-frame/1"])
def test_dtypes_and_method_go_through_the_model_to_its_buffer(compression):
    if codecs.parse(compression).name not in codecs.names():
        pytest.skip(f"needs the codec of {compression}")
    obs = gym.make("CartPole-v1").observation_space
    buffer_dtypes = find_buffer_dtypes(obs_shape=obs.shape, elem_dtype=obs.dtype, compression_method=compression)
    model = PPO(
        "MlpPolicy",
        "CartPole-v1",
        n_steps=32,
        batch_size=16,
        n_epochs=1,
        device="cpu",
        rollout_buffer_class=CompressedRolloutBuffer,
        rollout_buffer_kwargs=dict(dtypes=buffer_dtypes, compression_method=compression),  # noqa: C408
    )
    model.learn(total_timesteps=32)
    assert model.rollout_buffer.observations.codec.startswith(codecs.parse(compression).name)
    assert np.asarray(model.rollout_buffer.observations).any()


def test_the_old_example_that_asks_for_bytes_learns_from_whole_numbers_and_fractions():
    env = gym.make("CartPole-v1")
    flatten_obs_shape = np.prod(env.observation_space.shape)
    buffer_dtypes = dict(elem_type=np.uint8, runs_type=find_smallest_dtype(flatten_obs_shape))  # noqa: C408
    with pytest.warns(UserWarning, match="stored as float32, losslessly"):
        model = PPO(
            "MlpPolicy",
            env,
            n_steps=32,
            batch_size=16,
            device="cpu",
            rollout_buffer_class=CompressedRolloutBuffer,
            rollout_buffer_kwargs=dict(dtypes=buffer_dtypes, compression_method="rle"),  # noqa: C408
        )
    model.learn(total_timesteps=32)
    observations = np.asarray(model.rollout_buffer.observations)
    assert observations.dtype == np.float32
    assert (observations % 1 != 0).any()


def test_a_model_is_loaded_without_its_buffer_by_means_of_the_dummy(tmp_path):
    model = DQN("MlpPolicy", "CartPole-v1", device="cpu", buffer_size=100, replay_buffer_class=CompressedReplayBuffer)
    model.save(tmp_path / "model")
    loaded = DQN.load(tmp_path / "model", device="cpu", custom_objects={"replay_buffer_class": DummyCls})
    assert loaded.replay_buffer_class is DummyCls
    observation = np.zeros(4, np.float32)
    assert loaded.predict(observation, deterministic=True)[0] == model.predict(observation, deterministic=True)[0]
