"""The page of version 0.4.0 on the package index: names, levels, shorthands, the table of sizes, the example."""

import re

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.utils import get_linear_fn
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

from sb3_extra_buffers import compressed, recording
from sb3_extra_buffers.codecs import CellSpec, bind, parse
from sb3_extra_buffers.compressed import (
    CompressedArray,
    CompressedReplayBuffer,
    CompressedRolloutBuffer,
    find_buffer_dtypes,
)
from sb3_extra_buffers.errors import UnknownPluginError
from sb3_extra_buffers.training_utils.atari import make_env

CELL = CellSpec(np.uint8, 4 * 84 * 84)
FRAME = np.repeat(np.random.default_rng(0).integers(0, 6, CELL.nbytes // 8, np.uint8) * 40, 8)
METHODS = ["none", "rle", "rle-jit", "gzip", "igzip", "zstd", "lz4-frame", "lz4-block"]
LEVELS = {
    "gzip": range(10),
    "igzip": range(4),
    "zstd": [*range(1, 23), *range(-100, 0)],
    "lz4-frame": [*range(17), -1, -7, -100],
    "lz4-block": [*range(1, 13), 0, -1, -7, -100],
}
REFUSED = {"gzip": (-1, 10), "igzip": (-1, 4), "zstd": (0, 23, -101), "lz4-frame": (17,), "lz4-block": (13, 16)}
SHORTHAND = r"^((?:[A-Za-z]+)|(?:[\w\-]+/))(\-?[0-9]+)$"
#: The rows of the table of memory and latency. lz4-block has 12 levels: the library takes 16 for 12, we refuse it.
MEASURED = [
    "none", "zstd-100", "zstd-50", "lz4-frame/1", "gzip0", "zstd-5", "zstd-20", "zstd-3", "zstd-1",
    "zstd1", "zstd3", "igzip0", "rle", "lz4-block/1", "igzip1", "zstd5", "lz4-block/5", "lz4-frame/5",
    "gzip1", "gzip3", "igzip3", "zstd10", "lz4-block/9", "lz4-frame/9", "lz4-frame/12", "zstd15", "zstd22",
]  # fmt: skip


def restores(codec, cell=FRAME):
    out = np.empty_like(cell)
    codec.decode_into(codec.encode(cell), out)
    return bool((out == cell).all())


@pytest.mark.parametrize("method", METHODS)
def test_every_method_restores_a_frame_and_noise(method):
    codec = bind(method, CELL)
    assert restores(codec)
    assert restores(codec, np.random.default_rng(1).integers(0, 256, CELL.nbytes, np.uint8))


@pytest.mark.parametrize("method", LEVELS)
def test_every_documented_level_is_accepted_and_others_are_refused(method):
    for level in LEVELS[method]:
        codec = bind(f"{method}/{level}", CELL)
        assert codec.spec.params["level"] == level
    for level in REFUSED[method]:
        with pytest.raises(ValueError, match="level"):
            bind(f"{method}/{level}", CELL)


@pytest.mark.parametrize("method", LEVELS)
def test_the_ends_of_the_documented_levels_restore_a_frame(method):
    small = CellSpec(np.uint8, 7056)
    for level in {min(LEVELS[method]), -1, 0, 1, max(LEVELS[method])} & set(LEVELS[method]):
        assert restores(bind(f"{method}/{level}", small), FRAME[:7056])


@pytest.mark.parametrize(
    ("shorthand", "method", "level"),
    [
        ("igzip3", "igzip", 3),
        ("igzip/3", "igzip", 3),
        ("zstd-5", "zstd", -5),
        ("zstd/-5", "zstd", -5),
        ("lz4-frame/5", "lz4-frame", 5),
    ],
)
def test_shorthands_mean_what_the_page_says(shorthand, method, level):
    matched = re.match(SHORTHAND, shorthand)
    assert (matched[1].rstrip("/"), int(matched[2])) == (method, level)
    spec = bind(shorthand, CELL).spec
    assert (spec.name, spec.params["level"]) == (method, level)


def test_lz4_needs_the_slash():
    assert re.match(SHORTHAND, "lz4-frame5") is None
    with pytest.raises(UnknownPluginError, match=r"lz4-frame/5$"):
        bind("lz4-frame5", CELL)


@pytest.mark.parametrize("method", MEASURED)
def test_every_row_of_the_table_is_a_buffer(method):
    space = spaces.Box(0, 255, (84, 84), np.uint8)
    buffer = CompressedReplayBuffer(
        4,
        space,
        spaces.Discrete(2),
        "cpu",
        optimize_memory_usage=True,
        handle_timeout_termination=False,
        compression_method=method,
    )
    frame = FRAME[:7056].reshape(1, 84, 84)
    buffer.add(frame, frame[:, ::-1], np.zeros(1, int), np.zeros(1), np.zeros(1), [{}])
    sample = buffer.sample(2)
    assert (sample.observations.numpy() == frame).all()
    assert (sample.next_observations.numpy() == frame[:, ::-1]).all()
    assert parse(method).name in buffer.observations.codec


def test_names_are_where_the_structure_shows_them():
    from sb3_extra_buffers.training_utils import buffer_warmup, eval_model

    names = ("CompressedRolloutBuffer", "CompressedReplayBuffer", "CompressedArray", "find_buffer_dtypes")
    assert [name for name in names if not hasattr(compressed, name)] == []
    names = ("RecordBuffer", "FramelessRecordBuffer", "DummyRecordBuffer")
    assert [name for name in names if not hasattr(recording, name)] == []
    assert callable(eval_model.eval_model)
    assert callable(buffer_warmup.warm_up)


def test_a_compressed_array_is_read_and_written_like_an_array():
    array = CompressedArray((5, 2), np.uint8, (84, 84), compression_method="zstd-5")
    array[3, 1] = FRAME[:7056].reshape(84, 84)
    assert (array[3, 1] == FRAME[:7056].reshape(84, 84)).all()
    assert not array[0, 0].any()


def test_processes_start_after_kernels_are_compiled():
    obs = make_env(env_id="PongNoFrameskip-v4", n_envs=1, framestack=4).observation_space
    compression = "rle-jit"
    buffer_dtypes = find_buffer_dtypes(obs_shape=obs.shape, elem_dtype=obs.dtype, compression_method=compression)
    env = make_env(env_id="PongNoFrameskip-v4", n_envs=2, framestack=4)
    assert isinstance(env.unwrapped, SubprocVecEnv)
    buffer = CompressedRolloutBuffer(
        2, obs, env.action_space, "cpu", n_envs=2, dtypes=buffer_dtypes, compression_method=compression
    )
    assert env.reset().shape == (2, *obs.shape)
    env.close()
    assert "rle-jit" in buffer.observations.codec


# Of later versions of Stable-Baselines3, and of the progress bar.
@pytest.mark.filterwarnings("ignore:get_linear_fn:UserWarning", "ignore::tqdm.TqdmExperimentalWarning")
def test_the_example_trains_evaluates_and_saves(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ATARI_GAME = "MsPacmanNoFrameskip-v4"  # noqa: N806

    # As printed, but for lengths, the device, and processes, which start in the test above.
    short = {"vec_env_cls": DummyVecEnv, "max_num_frames_per_episode": 40}
    obs = make_env(env_id=ATARI_GAME, n_envs=1, framestack=4).observation_space
    compression = "rle-jit"  # or use "igzip1" since it's relatively noisy
    buffer_dtypes = find_buffer_dtypes(obs_shape=obs.shape, elem_dtype=obs.dtype, compression_method=compression)

    env = make_env(env_id=ATARI_GAME, n_envs=2, framestack=4, **short)
    eval_env = make_env(env_id=ATARI_GAME, n_envs=2, framestack=4, **short)

    model = PPO("CnnPolicy", env, verbose=0, learning_rate=get_linear_fn(2.5e-4, 0, 1), n_steps=8,
                batch_size=16, clip_range=get_linear_fn(0.1, 0, 1), n_epochs=1, ent_coef=0.01, vf_coef=0.5,
                seed=1970626835, device="cpu", rollout_buffer_class=CompressedRolloutBuffer,
                rollout_buffer_kwargs=dict(dtypes=buffer_dtypes, compression_method=compression))  # fmt: skip

    eval_callback = EvalCallback(eval_env, n_eval_episodes=2, eval_freq=4, log_path=f"./logs/{ATARI_GAME}/ppo/eval",
                                 best_model_save_path=f"./logs/{ATARI_GAME}/ppo/best_model", verbose=0)  # fmt: skip
    model.learn(total_timesteps=16, callback=eval_callback, progress_bar=True)
    model.save("ppo_MsPacman_4.zip")
    env.close()
    eval_env.close()
    assert (tmp_path / "logs" / ATARI_GAME / "ppo" / "best_model" / "best_model.zip").exists()
    assert PPO.load("ppo_MsPacman_4.zip").rollout_buffer_class is CompressedRolloutBuffer
