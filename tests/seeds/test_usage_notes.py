"""The usage notes of the published package: every snippet, name and shell line in them."""

import inspect

import numpy as np
import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecTransposeImage

from sb3_extra_buffers.compressed import CompressedReplayBuffer, CompressedRolloutBuffer, find_buffer_dtypes
from sb3_extra_buffers.recording import DummyRecordBuffer, FramelessRecordBuffer, RecordBuffer
from sb3_extra_buffers.training_utils.atari import make_env
from sb3_extra_buffers.training_utils.buffer_warmup import warm_up
from sb3_extra_buffers.training_utils.eval_model import eval_model

GAME = "PongNoFrameskip-v4"


@pytest.fixture(scope="module")
def env():
    # Arguments that make_env does not know go to the game: episodes of at most 30 steps.
    made = make_env(GAME, 2, DummyVecEnv, framestack=4, seed=0, max_num_frames_per_episode=120)
    yield made
    made.close()


@pytest.fixture(scope="module")
def model(env):
    return PPO("CnnPolicy", env, n_steps=8, batch_size=8, n_epochs=1, device="cpu", seed=0)


@pytest.mark.parametrize("compression", ["none", "rle", "rle-jit", "gzip", "igzip", "zstd", "lz4-frame", "lz4-block"])
def test_the_result_of_find_buffer_dtypes_goes_into_the_keyword_arguments_of_a_buffer(env, compression):
    buffer_dtypes = find_buffer_dtypes(
        obs_shape=env.observation_space.shape,
        elem_dtype=env.observation_space.dtype,
        compression_method=compression,
    )
    rollout_buffer_kwargs = {
        "dtypes": buffer_dtypes,
        "compression_method": compression,
    }
    assert set(buffer_dtypes) == {"elem_type", "runs_type"}
    assert np.dtype(buffer_dtypes["elem_type"]) == env.observation_space.dtype
    assert np.issubdtype(buffer_dtypes["runs_type"], np.unsignedinteger)
    model = PPO(
        "CnnPolicy",
        env,
        n_steps=4,
        batch_size=4,
        n_epochs=1,
        rollout_buffer_class=CompressedRolloutBuffer,
        rollout_buffer_kwargs=rollout_buffer_kwargs,
    )
    model.learn(8)
    assert compression in model.rollout_buffer.observations.codec


def test_a_recording_buffer_keeps_the_newest_steps():
    record_buffer = RecordBuffer(res=(84, 84), ch_num=4, size=40)
    for step in range(50):
        frame, reward, action = np.full((84, 84, 4), step, np.uint8), float(step), step % 3
        record_buffer.add(frame, reward, action)
    assert len(record_buffer) == 40
    assert sorted(record_buffer.rewards) == list(range(10, 50))
    assert sorted(record_buffer.frames[:, 0, 0, 0]) == list(range(10, 50))


@pytest.mark.parametrize("kind", [RecordBuffer, FramelessRecordBuffer])
def test_features_are_optional_and_recorded_with_each_step(kind):
    record_buffer = kind(res=(84, 84), ch_num=4, size=4, dtypes=[np.uint8, np.float32, np.int16, np.float64])
    for step in range(6):
        record_buffer.add(np.zeros((84, 84, 4), np.uint8), 1.0, 2, (step, step / 4))
    assert sorted(tuple(row) for row in record_buffer.features.tolist()) == [(n, n / 4) for n in range(2, 6)]


@pytest.mark.parametrize("kind", [FramelessRecordBuffer, DummyRecordBuffer])
def test_the_other_recording_buffers_take_the_same_calls(kind):
    record_buffer = kind(res=(84, 84), ch_num=4, size=40)
    for step in range(50):
        record_buffer.add(np.zeros((84, 84, 4), np.uint8), float(step), 1)
    if kind is FramelessRecordBuffer:
        assert sorted(record_buffer.rewards) == list(range(10, 50))


def test_make_env_stacks_frames_and_returns_them_channel_first(env):
    assert isinstance(env, VecTransposeImage)
    assert isinstance(env.venv, VecFrameStack)
    assert env.observation_space.shape == (4, 84, 84)
    alone = make_env(env_id=GAME, n_envs=1, framestack=1)
    assert alone.observation_space.shape == (1, 84, 84)
    alone.close()


def test_eval_model_fills_one_or_more_buffers(env, model, keep_observations):
    spaces = (env.observation_space, env.action_space)
    buffers = [CompressedReplayBuffer(200, *spaces, n_envs=2, device="cpu") for _ in range(2)]
    rewards, latencies = eval_model(2, env, model, close_env=False, buffer=buffers)
    assert len(rewards) == 2
    assert len(latencies) == 2
    sizes = [buffer.size() for buffer in buffers]
    assert sizes == [sizes[0]] * 2
    assert 0 < sizes[0] <= 30
    assert (buffers[0].observations[: sizes[0]] == buffers[1].observations[: sizes[0]]).all()
    keep_observations(buffers[0].sample(4).observations.numpy())


def test_warm_up_fills_a_buffer_by_a_trained_model(env, model):
    buffer = CompressedReplayBuffer(20, env.observation_space, env.action_space, n_envs=2, device="cpu")
    warm_up(buffer, n_envs=2, warmup_env=env, warmup_model=model, warmup_episodes=2)
    assert buffer.full  # 10 steps of each environment


def test_the_training_utilities_take_the_published_arguments():
    assert list(inspect.signature(make_env).parameters)[:5] == ["env_id", "n_envs", "vec_env_cls", "framestack", "seed"]
    expected = ["n_eps", "eval_env", "model", "close_env", "buffer"]
    assert list(inspect.signature(eval_model).parameters)[:5] == expected
    expected = ["buffer", "n_envs", "warmup_env", "warmup_model", "warmup_episodes", "mean_ep_len"]
    assert list(inspect.signature(warm_up).parameters)[:6] == expected


@pytest.mark.parametrize(
    ("variable", "saved"),
    [({}, True), ({"DISABLE_TEST_OBSERVATIONS_SAVE": "true"}, False), ({"CI": "true"}, False)],
    ids=["by default", "disabled", "in CI"],
)
def test_observations_are_saved_for_people_to_look_at(variable, saved, keep_observations, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("CI", "DISABLE_TEST_OBSERVATIONS_SAVE", "NOX_CURRENT_SESSION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variable.items():
        monkeypatch.setenv(name, value)
    stacks = np.random.default_rng(0).integers(0, 256, (6, 4, 84, 84), np.uint8)
    keep_observations(stacks)
    pictures = sorted((tmp_path / "debug_obs").glob("*.png"))
    assert len(pictures) == (4 if saved else 0)
    if saved:
        shown = np.asarray(pytest.importorskip("PIL.Image").open(pictures[1]))
        assert (shown == np.hstack(stacks[1])).all()


def test_experimental_packages_are_where_the_notes_say():
    from sb3_extra_buffers import gpu_buffers, vec_buf

    assert gpu_buffers.GpuReplayBuffer
    assert vec_buf.DummyVecRolloutBuffer
