"""The article about the published package: the drop-in line, the codecs, the quick example."""

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_extra_buffers.codecs import CellSpec, bind
from sb3_extra_buffers.compressed import CompressedRolloutBuffer, find_buffer_dtypes
from sb3_extra_buffers.training_utils.atari import make_env

ATARI_GAME = "PongNoFrameskip-v4"


def test_the_import_of_the_drop_in_replacement():
    from stable_baselines3.common.buffers import ReplayBuffer

    from sb3_extra_buffers.compressed import CompressedReplayBuffer

    space, actions = spaces.Box(0, 255, (84, 84), np.uint8), spaces.Discrete(3)
    made = [kind(20, space, actions, "cpu") for kind in (ReplayBuffer, CompressedReplayBuffer)]
    random = np.random.default_rng(0)
    for _ in range(30):
        obs = np.repeat(random.integers(0, 4, (2, 1, 84, 21), np.uint8), 4, axis=3)
        for buffer in made:
            buffer.add(*obs, np.ones(1, int), np.ones(1), np.zeros(1), [{}])
    samples = []
    for buffer in made:
        np.random.seed(0)
        samples.append(buffer.sample(64))
    for theirs, ours in zip(*samples, strict=True):
        assert theirs is ours is None or (theirs == ours).all()


@pytest.mark.parametrize("method", ["rle", "rle-jit", "gzip", "igzip", "zstd", "lz4-frame", "lz4-block"])
def test_a_compressed_mask_takes_less_than_2_percent_of_the_picture_that_it_stands_for(method):
    mask = np.zeros((240, 320), np.uint8)
    mask[120:] = 1
    mask[60:180, 100:160] = 2
    mask[100:140, 200:280] = 3
    codec, out = bind(method, CellSpec(np.uint8, mask.size)), np.empty_like(mask)
    payload = codec.encode(mask)
    codec.decode_into(payload, out)
    assert (out == mask).all()
    assert len(payload) < 0.02 * 3 * mask.nbytes  # of an RGB frame


def test_the_quick_example_trains(keep_observations):
    compression = "zstd-5"  # use ZStandard with -5 compression level
    obs = make_env(env_id="PongNoFrameskip-v4", n_envs=1, framestack=4).observation_space
    buffer_dtypes = find_buffer_dtypes(
        obs_shape=obs.shape, elem_dtype=obs.dtype, compression_method=compression
    )  # fmt: skip

    # As printed, but for the length, and for processes, which the test of the package page starts.
    env = make_env(env_id=ATARI_GAME, n_envs=2, framestack=4, vec_env_cls=DummyVecEnv)
    model = PPO("CnnPolicy", env, n_steps=8, batch_size=8, n_epochs=1, device="cpu",
        rollout_buffer_class=CompressedRolloutBuffer,
        rollout_buffer_kwargs=dict(dtypes=buffer_dtypes, compression_method=compression)
    )  # fmt: skip
    model.learn(total_timesteps=16)
    env.close()
    assert "zstd/-5" in model.rollout_buffer.observations.codec
    batch = next(model.rollout_buffer.get(4)).observations
    assert batch.shape == (4, 4, 84, 84)
    keep_observations(batch.numpy().astype(np.uint8))
