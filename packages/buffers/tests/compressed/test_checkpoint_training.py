"""Checkpoints beside Stable-Baselines3: during training, its own pickles, and what is converted from them."""

from importlib import import_module
from io import FileIO

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3 import DQN
from stable_baselines3.common.buffers import DictReplayBuffer, NStepReplayBuffer, ReplayBuffer, RolloutBuffer
from stable_baselines3.common.save_util import save_to_pkl
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer

from sb3_extra_buffers.compressed import (
    BufferCheckpointCallback,
    CompressedHerReplayBuffer,
    CompressedNStepReplayBuffer,
    CompressedReplayBuffer,
    convert,
    inspect,
)
from sb3_extra_buffers.errors import BufferStateError, FileContentError, ParameterError

pytestmark = pytest.mark.usefixtures("no_waiting")
ACTIONS = spaces.Discrete(5)


class Screen(gym.Env):
    observation_space, action_space = spaces.Box(0, 255, (1, 36, 36), np.uint8), ACTIONS

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.np_random.integers(0, 3, (1, 36, 36), np.uint8), {}

    def step(self, action):
        self.steps += 1
        return self.np_random.integers(0, 3, (1, 36, 36), np.uint8), float(action), self.steps % 7 == 0, False, {}


def dqn(**options):
    return DQN("CnnPolicy", Screen(), buffer_size=50, learning_starts=10, device="cpu", **options)


def a_few_steps_behind(buffer, other, same):
    """Check that a buffer is another one before its newest transitions."""
    behind = (other.pos - buffer.pos) % other.buffer_size
    assert 1 <= behind <= 4  # a rollout of this model
    rows = (buffer.pos + behind + np.arange(other.buffer_size - behind)) % other.buffer_size
    same(buffer._get_samples(rows), other._get_samples(rows))


def test_model_and_buffer_are_saved_while_training_and_go_on(tmp_path, same):
    model = dqn(replay_buffer_class=CompressedReplayBuffer)
    model.learn(70, callback=BufferCheckpointCallback(10, tmp_path / "run"))
    found = inspect(tmp_path / "run" / "buffer")
    assert (found.buffer, found.transitions) == ("CompressedReplayBuffer", 50)
    again = DQN.load(tmp_path / "run" / "model.zip", Screen(), device="cpu")
    again.replay_buffer = CompressedReplayBuffer.load(tmp_path / "run" / "buffer", "cpu")
    a_few_steps_behind(again.replay_buffer, model.replay_buffer, same)
    again.learn(20, callback=BufferCheckpointCallback(10, tmp_path / "run"), reset_num_timesteps=False)
    loaded = CompressedReplayBuffer.load(tmp_path / "run" / "buffer", "cpu", verify=True)
    a_few_steps_behind(loaded, again.replay_buffer, same)
    assert sorted(file.name for file in (tmp_path / "run").iterdir()) == ["buffer", "model.zip"]


class SlowFile(FileIO):
    """A file that takes a few bytes at a time, as a system may."""

    def write(self, content, /):
        return super().write(memoryview(content)[:1000])


def test_a_model_is_whole_also_where_the_system_takes_few_bytes_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(import_module("sb3_extra_buffers.checkpoints.atomic"), "FileIO", SlowFile)
    model = dqn(replay_buffer_class=CompressedReplayBuffer, policy_kwargs={"net_arch": [8]})
    model.learn(10, callback=BufferCheckpointCallback(10, tmp_path))
    DQN.load(tmp_path / "model.zip", Screen(), device="cpu")


def test_a_model_without_a_compressed_buffer_is_refused_at_once(tmp_path):
    with pytest.raises(BufferStateError, match="replay_buffer_class"):
        dqn().learn(5, callback=BufferCheckpointCallback(1, tmp_path))
    for wrong in (0, True, 1.5):
        with pytest.raises(ParameterError, match="at least 1"):
            BufferCheckpointCallback(wrong, tmp_path)


def test_the_pickles_of_stable_baselines3_hold_a_buffer_that_was_loaded(tmp_path, same_samples):
    model = dqn(replay_buffer_class=CompressedReplayBuffer)
    model.learn(60)
    model.replay_buffer.save(tmp_path / "checkpoint")
    model.replay_buffer = CompressedReplayBuffer.load(tmp_path / "checkpoint", "cpu")
    model.save_replay_buffer(tmp_path / "buffer.pkl")
    expected = model.replay_buffer
    model.load_replay_buffer(tmp_path / "buffer.pkl")
    assert model.replay_buffer is not expected
    same_samples(model.replay_buffer, expected, 30)


@pytest.mark.parametrize("n_envs", [1, 3])
@pytest.mark.parametrize("steps", [7, 20, 33])
@pytest.mark.parametrize("kind", [ReplayBuffer, DictReplayBuffer])
def test_a_pickle_becomes_a_buffer_that_samples_the_same(
    kind, steps, n_envs, tmp_path, screen, composite, walk, feed, same_samples
):
    space = composite() if kind is DictReplayBuffer else screen()
    old = kind(20 * n_envs, space, ACTIONS, "cpu", n_envs)
    for step in walk(space, ACTIONS, n_envs, steps):
        feed(step, old)
    save_to_pkl(tmp_path / "old.pkl", old)
    new = convert(tmp_path / "old.pkl", trust_pickle=True, compression_method="gzip", layout="cells")
    assert (new.pos, new.full) == (old.pos, old.full)
    same_samples(new, old, 50)
    for step in walk(space, ACTIONS, n_envs, 9, seed=5):
        feed(step, old, new)
    same_samples(new, old, 50)


def test_a_pickle_with_one_observation_per_step(tmp_path, screen, walk, feed, same_samples):
    options = {"optimize_memory_usage": True, "handle_timeout_termination": False}
    old = ReplayBuffer(20, screen(), ACTIONS, "cpu", **options)
    for step in walk(screen(), ACTIONS, 1, 33):
        feed(step, old)
    save_to_pkl(tmp_path / "old.pkl", old)
    same_samples(convert(tmp_path / "old.pkl", trust_pickle=True), old, 50)


@pytest.mark.parametrize("n_envs", [1, 3])
@pytest.mark.parametrize("steps", [12, 33])
def test_a_pickle_with_returns_of_several_steps(steps, n_envs, tmp_path, screen, walk, feed, same_samples):
    old = NStepReplayBuffer(20 * n_envs, screen(), ACTIONS, "cpu", n_envs, n_steps=4, gamma=0.9)
    for step in walk(screen(), ACTIONS, n_envs, steps):
        feed(step, old)
    save_to_pkl(tmp_path / "old.pkl", old)
    new = convert(tmp_path / "old.pkl", trust_pickle=True)
    assert (type(new), new.n_steps, new.gamma) == (CompressedNStepReplayBuffer, 4, 0.9)
    same_samples(new, old, 50)
    for step in walk(screen(), ACTIONS, n_envs, 9, seed=5):
        feed(step, old, new)
    same_samples(new, old, 50)


@pytest.mark.parametrize("copy_info_dict", [False, True])
@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("steps", [15, 33])
def test_a_pickle_with_goals(steps, is_late, copy_info_dict, tmp_path, screen, idle, walk, feed, same_samples):
    goal = spaces.Box(-10, 10, (70,), np.float32)
    space = spaces.Dict({"observation": screen(), "achieved_goal": goal, "desired_goal": goal})
    env = idle(space, ACTIONS, 2)
    options = {"n_sampled_goal": 3, "goal_selection_strategy": "final", "copy_info_dict": copy_info_dict}
    old = HerReplayBuffer(40, space, ACTIONS, env, "cpu", 2, **options)
    for step in walk(space, ACTIONS, 2, steps):
        feed(step, old)
    save_to_pkl(tmp_path / "old.pkl", old)
    new = convert(tmp_path / "old.pkl", trust_pickle=True, **({} if is_late else {"env": env}))
    if is_late:
        new.set_env(env)
    assert (type(new), new.her_ratio) == (CompressedHerReplayBuffer, old.her_ratio)
    same_samples(new, old, 50)
    for step in walk(space, ACTIONS, 2, 30, seed=5):
        feed(step, old, new)
    same_samples(new, old, 50)
    new.save(tmp_path / "checkpoint")
    same_samples(CompressedHerReplayBuffer.load(tmp_path / "checkpoint", "cpu", env=env), old, 50)


class OwnReplayBuffer(ReplayBuffer):
    """What somebody has derived, and may keep anything."""


def test_what_is_not_converted_says_so_and_why(tmp_path, screen):
    save_to_pkl(tmp_path / "old.pkl", RolloutBuffer(9, screen(), ACTIONS, "cpu"))
    with pytest.raises(FileContentError, match="collected anew at every update"):
        convert(tmp_path / "old.pkl", trust_pickle=True)
    save_to_pkl(tmp_path / "old.pkl", OwnReplayBuffer(9, screen(), ACTIONS, "cpu"))
    with pytest.raises(FileContentError, match=r"found a OwnReplayBuffer.*add\(\) what this one holds"):
        convert(tmp_path / "old.pkl", trust_pickle=True)


def test_no_pickle_is_read_without_a_word(tmp_path, screen):
    save_to_pkl(tmp_path / "old.pkl", ReplayBuffer(9, screen(), ACTIONS, "cpu"))
    for word in ({}, {"trust_pickle": False}, {"trust_pickle": 1}):
        with pytest.raises(ParameterError, match="reading a pickle runs code"):
            convert(tmp_path / "old.pkl", **word)
