"""The first readme of the published package: its snippets, names and install lines."""

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import ReplayBuffer, RolloutBuffer
from stable_baselines3.common.vec_env import SubprocVecEnv

from sb3_extra_buffers import compressed, recording
from sb3_extra_buffers.codecs import CellSpec, bind
from sb3_extra_buffers.compressed import CompressedReplayBuffer, CompressedRolloutBuffer, find_smallest_dtype


def test_the_classes_are_where_the_structure_shows_them():
    assert issubclass(compressed.CompressedRolloutBuffer, RolloutBuffer)
    assert issubclass(compressed.CompressedReplayBuffer, ReplayBuffer)
    for name in ("RecordBuffer", "FramelessRecordBuffer", "DummyRecordBuffer"):
        assert issubclass(getattr(recording, name), recording.BaseRecordBuffer)


@pytest.mark.parametrize("method", ["rle", "rle-jit", "gzip", "igzip", "none"])
def test_the_compression_methods_restore_a_mask(method):
    mask = np.repeat(np.arange(8, dtype=np.uint8), 882)
    codec, out = bind(method, CellSpec(np.uint8, mask.size)), np.empty_like(mask)
    payload = codec.encode(mask)
    codec.decode_into(payload, out)
    assert (out == mask).all()
    assert (len(payload) < mask.nbytes / 10) == (method != "none")


def test_kernels_are_compiled_before_processes_start():
    # As printed, with an environment of this test.
    from sb3_extra_buffers.compressed.compression_methods import HAS_NUMBA

    compression_method = "rle-jit"
    storage_dtypes = dict(elem_type=np.uint8, runs_type=np.uint16)

    assert HAS_NUMBA
    if HAS_NUMBA and "jit" in compression_method:
        from sb3_extra_buffers.compressed.compression_methods.compression_methods_numba import init_jit

        init_jit(**storage_dtypes)

    env = SubprocVecEnv([lambda: gym.make("CartPole-v1") for _ in range(2)])
    buffer = CompressedReplayBuffer(
        8, env.observation_space, env.action_space, "cpu", n_envs=2, compression_method=compression_method
    )
    obs = env.reset()
    next_obs, rewards, dones, infos = env.step(np.zeros(2, int))
    buffer.add(obs, next_obs, np.zeros(2, int), rewards, dones, infos)
    env.close()
    assert (buffer.reconstruct_obs(0, 1) == obs[1]).all()


def test_the_example_trains_plays_and_draws():
    # As printed, but for the length and a window.
    env = gym.make("CartPole-v1", render_mode="rgb_array")
    flatten_obs_shape = np.prod(env.observation_space.shape)
    buffer_dtypes = dict(elem_type=np.uint8, runs_type=find_smallest_dtype(flatten_obs_shape))

    with pytest.warns(UserWarning, match="uint8"):  # observations of CartPole are floats: they are stored as such
        model = PPO("MlpPolicy", env, verbose=0, n_steps=64, n_epochs=1, rollout_buffer_class=CompressedRolloutBuffer,
                    rollout_buffer_kwargs=dict(dtypes=buffer_dtypes, compression_method="rle"))  # fmt: skip
    model.learn(total_timesteps=64)
    assert model.rollout_buffer.observations.dtype == np.float32

    vec_env = model.get_env()
    obs = vec_env.reset()
    for _ in range(10):
        action, _states = model.predict(obs, deterministic=True)
        obs, reward, _done, _info = vec_env.step(action)
        vec_env.render()
    env.close()
    assert obs.shape == (1, 4)
    assert reward.shape == (1,)
