"""With the lowest declared versions of dependencies, buffers store, learn, save and load; the command line answers."""

import json
import os
import subprocess
import sys
from importlib.metadata import version

import numpy as np
import pytest
from gymnasium import spaces
from packaging.version import Version
from stable_baselines3 import DQN, PPO

from sb3_extra_buffers import codecs, compressed
from sb3_extra_buffers.recording import RecordBuffer

LOWEST = json.loads(os.environ.get("LOWEST", "{}"))
METHODS = ["auto", *codecs.names()]


@pytest.mark.parametrize(("name", "lowest"), LOWEST.items())
def test_the_lowest_version_is_installed(name, lowest):
    # The index may have withdrawn a release, or count more parts: 4.8 is 4.8.0.74.
    assert Version(version(name)).release[:2] == (*Version(lowest).release, 0)[:2]


@pytest.mark.parametrize("method", METHODS)
def test_a_replay_buffer_restores_stacked_frames_and_is_saved_and_loaded(method, tmp_path):
    frames = np.repeat(np.random.default_rng(0).integers(0, 4, (104, 36, 9), np.uint8) * 60, 4, axis=2)
    stacks = np.stack([frames[number : number + 4] for number in range(101)])[:, np.newaxis]
    space = spaces.Box(0, 255, (4, 36, 36), np.uint8)
    buffer = compressed.CompressedReplayBuffer(60, space, spaces.Box(-1, 1, (2,)), "cpu", compression_method=method)
    for step in range(100):
        buffer.add(stacks[step], stacks[step + 1], np.zeros((1, 2)), np.array([step]), np.zeros(1), [{}])
    buffer.save(tmp_path / "saved")
    for one in (buffer, compressed.CompressedReplayBuffer.load(tmp_path / "saved", device="cpu")):
        sample = one.sample(100)
        steps = sample.rewards[:, 0].numpy().astype(int)
        assert (sample.observations.numpy() == stacks[steps, 0]).all()
        assert (sample.next_observations.numpy() == stacks[steps + 1, 0]).all()


def test_a_checkpoint_with_discrete_spaces_is_saved_and_loaded(tmp_path):
    buffer = compressed.CompressedReplayBuffer(20, spaces.Discrete(500), spaces.Discrete(6), "cpu")
    for step in range(20):
        buffer.add(np.array([step]), np.array([step + 1]), np.array([1]), np.array([step]), np.zeros(1), [{}])
    buffer.save(tmp_path / "saved")
    loaded = compressed.CompressedReplayBuffer.load(tmp_path / "saved", device="cpu")
    assert loaded.observation_space == spaces.Discrete(500)
    sample = loaded.sample(30)
    assert (sample.observations[:, 0] == sample.rewards[:, 0]).all()


@pytest.mark.parametrize("method", METHODS)
def test_models_learn(method):
    kwargs = {"compression_method": method}
    dqn = DQN(
        "MlpPolicy",
        "CartPole-v1",
        buffer_size=200,
        learning_starts=20,
        replay_buffer_class=compressed.CompressedReplayBuffer,
        replay_buffer_kwargs=kwargs,
    )
    ppo = PPO(
        "MlpPolicy",
        "CartPole-v1",
        n_steps=64,
        n_epochs=1,
        rollout_buffer_class=compressed.CompressedRolloutBuffer,
        rollout_buffer_kwargs=kwargs,
        device="cpu",
    )
    assert dqn.learn(60).replay_buffer.size() == 60
    assert ppo.learn(64).rollout_buffer.full


def test_steps_are_recorded_and_loaded(tmp_path):
    recorded = RecordBuffer((24, 24), 3, size=10)
    for step in range(15):
        recorded.add(np.full((24, 24, 3), step, np.uint8), step, 0)
    recorded.save(tmp_path / "steps.rec")
    loaded = RecordBuffer.load(tmp_path / "steps.rec")
    assert loaded.rewards.tolist() == list(range(5, 15))
    assert (loaded.frames[:, 0, 0, 0] == loaded.rewards).all()


@pytest.mark.parametrize("words", ["--help", "advise --help", "codecs", "doctor", "inspect --help"])
def test_the_command_line_answers(words):
    command = [sys.executable, "-m", "sb3_extra_buffers.cli", *words.split()]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.strip()
    assert "Traceback" not in ran.stderr
