"""One combination of codecs: what was asked for is there and works with every heap, the rest is explained."""

import importlib
import importlib.util
import os
from importlib.metadata import distributions

import numpy as np
import pytest
from gymnasium import spaces

from sb3_extra_buffers import codecs, compressed
from sb3_extra_buffers.codecs import CellSpec, bind, decode_batch, encode_batch
from sb3_extra_buffers.errors import MissingExtraError, UnknownPluginError
from sb3_extra_buffers.heaps import create

BUILT_IN = ["gzip", "none", "rle"]
EXPECTED = sorted([*BUILT_IN, *os.environ["EXPECTED_CODECS"].split()])
OURS = sorted([*BUILT_IN, "igzip", "lz4-block", "lz4-frame", "rle-jit", "zstd"])
HEAPS = {"memory": {}, "ring": {"capacity": 1 << 22}, "mmap": {"capacity": 1 << 22}}


def test_exactly_what_was_asked_for_is_listed_and_healthy():
    assert list(codecs.names()) == EXPECTED
    if importlib.util.find_spec("sb3_extra_buffers.doctor"):
        from sb3_extra_buffers.doctor import examine

        assert examine().healthy


def test_what_the_published_package_brought_comes_without_extras():
    for module in ("compressed", "recording", "training_utils", "vec_buf"):
        importlib.import_module(f"sb3_extra_buffers.{module}")


def test_there_is_at_most_one_build_of_opencv():
    installed = {distribution.name.lower() for distribution in distributions()}
    assert len([name for name in installed if name.startswith("opencv")]) <= 1


@pytest.mark.parametrize("heap", HEAPS)
@pytest.mark.parametrize("name", EXPECTED)
def test_a_batch_goes_through_a_heap_and_comes_back(name, heap):
    random = np.random.default_rng(0)
    frames = np.repeat(random.integers(0, 4, (40, 84, 21), np.uint8) * 60, 4, axis=2).reshape(40, -1)
    frames[7] = random.integers(0, 256, frames.shape[1], np.uint8)
    codec = bind(name, CellSpec(np.uint8, frames.shape[1]))
    store = create(heap, 40, **HEAPS[heap])
    for start in range(0, 40, 8):
        cells = np.arange(start, start + 8)
        store.commit(encode_batch(codec, frames[cells], store.reserve(cells, 8 * codec.max_encoded_nbytes)))
    order = random.integers(0, 40, 64)
    out = np.empty((64, frames.shape[1]), np.uint8)
    decode_batch(codec, store, *store.locate(order), out)
    assert (out == frames[order]).all()
    assert store.live < frames.nbytes or name == "none"


@pytest.mark.parametrize("name", OURS)
def test_what_was_not_asked_for_is_explained(name):
    if name in EXPECTED:
        assert bind(name, CellSpec(np.uint8, 10)).spec.name == name
        return
    with pytest.raises(UnknownPluginError, match=f"{name}' is not installed. Run: pip install"):
        bind(name, CellSpec(np.uint8, 10))


def test_buffers_of_sb3_contrib_work_or_say_which_extra_they_need():
    if importlib.util.find_spec("sb3_contrib") is None:
        with pytest.raises(MissingExtraError, match=r"sb3-extra-buffers\[contrib\]"):
            _ = compressed.CompressedMaskableRolloutBuffer
    else:
        assert compressed.CompressedMaskableRolloutBuffer.__name__ == "CompressedMaskableRolloutBuffer"


def test_buffers_work_with_what_is_installed():
    frames = np.repeat(np.arange(101, dtype=np.uint8), 400).reshape(101, 1, 20, 20)
    space = spaces.Box(0, 255, (20, 20), np.uint8)
    buffer = compressed.CompressedReplayBuffer(60, space, spaces.Discrete(2), device="cpu", prefer="memory")
    for step in range(100):
        buffer.add(frames[step], frames[step + 1], np.zeros(1, int), np.array([step]), np.zeros(1), [{}])
    sample = buffer.sample(200)
    steps = sample.rewards[:, 0].numpy().astype(int)
    assert (sample.observations.numpy() == frames[steps, 0]).all()
    assert (sample.next_observations.numpy() == frames[steps + 1, 0]).all()
    assert buffer.memory_report().ratio > 2


@pytest.mark.skipif("zstd" not in EXPECTED, reason="its codec was not asked for")
def test_the_first_example_that_people_try_trains_with_the_codec_alone():
    from stable_baselines3 import PPO
    from stable_baselines3.common.envs import FakeImageEnv

    env = FakeImageEnv(screen_height=36, screen_width=36, n_channels=1, discrete=True)
    obs, compression = env.observation_space, "zstd-5"
    dtypes = compressed.find_buffer_dtypes(obs_shape=obs.shape, elem_dtype=obs.dtype, compression_method=compression)
    model = PPO(
        "CnnPolicy",
        env,
        n_steps=8,
        batch_size=8,
        n_epochs=1,
        rollout_buffer_class=compressed.CompressedRolloutBuffer,
        rollout_buffer_kwargs={"dtypes": dtypes, "compression_method": compression},
    )
    model.learn(total_timesteps=8)
    assert "zstd/-5" in model.rollout_buffer.observations.codec


@pytest.mark.skipif(EXPECTED != OURS, reason="the extra fast was not asked for")
def test_after_installing_fast_the_quick_example_of_the_published_article_trains():
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import DummyVecEnv

    from sb3_extra_buffers.compressed import CompressedRolloutBuffer, find_buffer_dtypes
    from sb3_extra_buffers.training_utils.atari import make_env

    compression = "zstd-5"
    obs = make_env(env_id="PongNoFrameskip-v4", n_envs=1, framestack=4).observation_space
    buffer_dtypes = find_buffer_dtypes(obs_shape=obs.shape, elem_dtype=obs.dtype, compression_method=compression)
    env = make_env(env_id="PongNoFrameskip-v4", n_envs=2, framestack=4, vec_env_cls=DummyVecEnv)
    model = PPO(
        "CnnPolicy",
        env,
        n_steps=8,
        batch_size=8,
        n_epochs=1,
        rollout_buffer_class=CompressedRolloutBuffer,
        rollout_buffer_kwargs={"dtypes": buffer_dtypes, "compression_method": compression},
    )
    model.learn(total_timesteps=16)
    assert next(model.rollout_buffer.get(4)).observations.shape == (4, 4, 84, 84)


def test_games_are_there_or_their_extra_is_named():
    from stable_baselines3.common.vec_env import DummyVecEnv

    from sb3_extra_buffers.training_utils.atari import make_env

    if importlib.util.find_spec("ale_py") is None:
        with pytest.raises(MissingExtraError, match=r"sb3-extra-buffers\[atari\]"):
            make_env("PongNoFrameskip-v4", 1)
    else:
        env = make_env("PongNoFrameskip-v4", 2, DummyVecEnv, framestack=4)
        assert env.reset().shape == (2, 4, 84, 84)
        env.close()
