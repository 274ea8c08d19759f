"""``DummyVecReplayBuffer``: one stream, several buffers, and a model that learns as with one."""

import pickle
import pickletools
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3 import DQN
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer
from stable_baselines3.common.envs import SimpleMultiObsEnv

from sb3_extra_buffers.compressed import CompressedDictReplayBuffer, CompressedReplayBuffer
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.testing.processes import in_forked_child
from sb3_extra_buffers.vec_buf import DummyVecReplayBuffer

SPACE, ACTION = spaces.Box(0, 255, (4, 12, 12), np.uint8), spaces.Discrete(3)
COMPRESSED = partial(CompressedReplayBuffer, compression_method="rle")
ENVS = 2


def fill(buffer, steps, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        images = rng.integers(0, 4, (2, ENVS, *SPACE.shape), dtype=np.uint8) // 3
        done = rng.integers(0, 2, ENVS)
        infos = [{"TimeLimit.truncated": bool(over and rng.integers(0, 2))} for over in done]
        buffer.add(*images, rng.integers(0, 3, (ENVS, 1)), rng.normal(size=ENVS), done, infos)


def sampled(buffer):
    np.random.seed(4)
    return [part.numpy().tobytes() for part in buffer.sample(30) if part is not None]


def new(**kwargs):
    return DummyVecReplayBuffer(20, SPACE, ACTION, "cpu", n_envs=ENVS, **kwargs)


@pytest.mark.parametrize("steps", [7, 10, 14], ids=["some", "full", "wrapped"])
@pytest.mark.parametrize("use_threads", [False, True])
def test_every_buffer_gets_the_same_and_returns_the_same(use_threads, steps):
    alone = ReplayBuffer(20, SPACE, ACTION, "cpu", n_envs=ENVS)
    given = ReplayBuffer(20, SPACE, ACTION, "cpu", n_envs=ENVS)
    buffer = new(use_threads=use_threads, buffers=[given, COMPRESSED])
    fill(alone, steps)
    fill(buffer, steps)
    assert buffer.buffers[0] is given
    assert (buffer.pos, buffer.full, buffer.size()) == (alone.pos, alone.full, alone.size())
    for one in (buffer, *buffer.buffers):
        assert sampled(one) == sampled(alone)
    assert sampled(pickle.loads(pickle.dumps(buffer))) == sampled(alone)
    buffer.reset()
    assert [one.size() for one in (buffer, *buffer.buffers)] == [0, 0, 0]


def test_without_buffers_there_is_one_of_stable_baselines3_with_the_arguments_given():
    buffer = new(optimize_memory_usage=True, handle_timeout_termination=False)
    (only,) = buffer.buffers
    assert type(only) is ReplayBuffer
    assert only.optimize_memory_usage
    assert not only.handle_timeout_termination
    assert "observations" not in vars(buffer)
    assert buffer.observations is only.observations


def test_a_model_learns_the_same_as_with_one_buffer(tmp_path):
    def trained(**kwargs):
        model = DQN("MlpPolicy", "CartPole-v1", buffer_size=300, learning_starts=20, seed=2, device="cpu", **kwargs)
        return model.learn(60)

    several = {"buffers": [CompressedReplayBuffer, ReplayBuffer]}
    ours = trained(replay_buffer_class=DummyVecReplayBuffer, replay_buffer_kwargs=several)
    theirs = trained()
    for own, other in zip(ours.policy.state_dict().values(), theirs.policy.state_dict().values()):
        assert th.equal(own, other)
    ours.save_replay_buffer(tmp_path / "buffer")
    ours.load_replay_buffer(tmp_path / "buffer")
    for one in (ours.replay_buffer, *ours.replay_buffer.buffers):
        assert sampled(one) == sampled(theirs.replay_buffer)


def test_dict_observations_pass_through():
    buffers = {"buffers": [DictReplayBuffer, CompressedDictReplayBuffer]}
    model = DQN(
        "MultiInputPolicy",
        gym.wrappers.TimeLimit(SimpleMultiObsEnv(random_start=False), 20),
        buffer_size=100,
        device="cpu",
        replay_buffer_class=DummyVecReplayBuffer,
        replay_buffer_kwargs=buffers,
    ).learn(40)
    first, second = model.replay_buffer.buffers
    for key, rows in first.observations.items():
        assert np.array_equal(rows[:40], second.observations[key][:40])
    assert [type(part) for part in DummyVecReplayBuffer(9, first.observation_space, ACTION).buffers] == [
        DictReplayBuffer
    ]


def test_buffers_that_do_not_fit_are_refused():
    with pytest.raises(ParameterError, match=r"20 steps for 1 environments.*must have 10 steps for 2"):
        new(buffers=[ReplayBuffer(20, SPACE, ACTION, "cpu")])


def test_pickles_name_the_module_that_was_published():
    buffer = DummyVecReplayBuffer(10, SPACE, ACTION, "cpu", buffers=[ReplayBuffer])
    operations = [(code.name, text) for code, text, _ in pickletools.genops(pickle.dumps(buffer, protocol=2))]
    named = {text.split()[0] for name, text in operations if name == "GLOBAL"}
    assert {name for name in named if name.startswith("sb3_extra")} == {"sb3_extra_buffers.vec_buf.buffers"}


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_starts_threads_of_its_own():
    buffer = new(buffers=[ReplayBuffer, ReplayBuffer], use_threads=True)
    buffer.reset()
    in_forked_child(buffer.reset)
    buffer.reset()
