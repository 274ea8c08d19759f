"""Environments are played as Stable-Baselines3 hands them to a buffer."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3 import DQN
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_extra_buffers.advisor import make, play
from sb3_extra_buffers.errors import ParameterError

COLOURS = "AdvisorColours-v0"


class Colours(gym.Env):
    """Images channels last; the number of the step is in every pixel."""

    observation_space = spaces.Box(0, 255, (40, 36, 3), np.uint8)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.number = 0
        return self._image(), {}

    def step(self, action):
        self.number += 1
        return self._image(), float(action), self.number == 30, False, {}

    def _image(self):
        image = np.full((40, 36, 3), self.number, np.uint8)
        image[..., 2] = 200
        return image


@pytest.fixture
def colours():
    gym.register(COLOURS, Colours)
    yield COLOURS
    del gym.registry[COLOURS]


def test_images_come_channels_first_as_an_algorithm_has_them(colours):
    env = make(colours, n_envs=2)
    assert env.observation_space.shape == (3, 40, 36)
    assert env.observation_space == DQN("CnnPolicy", Colours(), buffer_size=10).observation_space
    stream = play(env, "colours", 70, progress=False)
    assert stream.n_envs == 2
    assert stream.transitions == 140
    step = stream.steps[3]
    assert step.observations.shape == (2, 3, 40, 36)
    assert (step.observations[:, :2] == 3).all()
    assert (step.observations[:, 2] == 200).all()
    assert (step.next_observations[:, 0] == 4).all()


def test_a_function_may_make_the_environment(colours):
    env = make(Colours, n_envs=2, stack=2, seed=5)
    assert (env.num_envs, env.observation_space.shape) == (2, (6, 40, 36))
    vectorized = make(lambda: DummyVecEnv([Colours, Colours, Colours]))
    assert (vectorized.num_envs, vectorized.observation_space.shape) == (3, (3, 40, 36))


def test_a_function_that_makes_something_else_is_refused():
    with pytest.raises(ParameterError, match=r"environment='CartPole-v1' is not allowed; it must be a gymnasium\.Env"):
        make(lambda: "CartPole-v1")


def test_the_true_last_observation_of_an_episode_is_kept(colours):
    steps = play(make(colours), "colours", 70, progress=False).steps
    assert steps[29].dones.all()
    assert (steps[29].next_observations[:, 0] == 30).all()
    assert (steps[30].observations[:, 0] == 0).all()


def test_observations_are_stacked_on_request(colours):
    stream = play(make(colours, stack=4), "colours", 70, progress=False)
    assert stream.observation_space.shape == (12, 40, 36)
    assert stream.steps[9].observations[0, ::3, 0, 0].tolist() == [6, 7, 8, 9]


def test_the_same_seed_plays_the_same():
    one, other = (play(make("CartPole-v1", seed=5), "CartPole", 64, seed=5, progress=False) for _ in range(2))
    for step, same in zip(one.steps, other.steps):
        assert np.array_equal(step.observations, same.observations)
        assert np.array_equal(step.actions, same.actions)


def test_a_model_plays_if_there_is_one(colours):
    class AlwaysOne:
        def predict(self, observations, **_):
            return np.ones(len(observations), np.int64), None

    stream = play(make(colours), "colours", 64, AlwaysOne(), progress=False)
    assert all(step.actions.all() for step in stream.steps)


@pytest.mark.parametrize("name", ["ALE/Pong-v5", "PongNoFrameskip-v4"])
def test_atari_games_are_preprocessed_and_stacked(name):
    pytest.importorskip("ale_py")
    env = make(name)
    assert env.observation_space == spaces.Box(0, 255, (4, 84, 84), np.uint8)
    stream = play(env, name, 64, progress=False)
    before, after = stream.steps[20].observations, stream.steps[20].next_observations
    assert np.array_equal(before[0, 1:], after[0, :3])  # one frame further
    assert len(np.unique(after)) > 3


@pytest.mark.parametrize("name", ["Nope-v0", "CartPole-v77", "gymnasium:Nope-v0"])
def test_an_environment_that_nobody_knows_is_refused_by_name(name):
    with pytest.raises(ParameterError, match=f"environment='{name}' is not allowed; Gymnasium does not know it"):
        make(name)


def test_what_was_probably_meant_is_suggested():
    with pytest.raises(ParameterError, match="Did you mean 'CartPole-v1'"):
        make("cartpol")


def test_a_package_that_is_not_installed_is_named():
    with pytest.raises(ParameterError, match=r"nowhere is not installed\. Run: pip install nowhere"):
        make("nowhere:CartPole-v1")


def test_a_package_may_be_named_before_a_colon():
    assert make("gymnasium:CartPole-v1").observation_space.shape == (4,)


def test_what_no_buffer_can_hold_is_refused():
    with pytest.raises(ParameterError, match="hold Box, Discrete, MultiDiscrete, MultiBinary"):
        play(make("Blackjack-v1"), "Blackjack", 64, progress=False)


@pytest.mark.parametrize(
    ("observations", "actions", "told"),
    [
        (spaces.Box(0, 1, ()), spaces.Discrete(2), "observation_space"),
        (spaces.MultiDiscrete([[2, 2], [2, 2]]), spaces.Discrete(2), "observation_space"),
        (spaces.Dict({"a": spaces.Dict({"b": spaces.Discrete(2)})}), spaces.Discrete(2), "observation_space"),
        (spaces.Discrete(2), spaces.Dict({"a": spaces.Discrete(2)}), "action_space"),
    ],
    ids=["scalar", "matrix", "nested", "actions"],
)
def test_spaces_that_no_buffer_holds_are_refused_before_anything_is_played(observations, actions, told):
    class Env:
        observation_space, action_space, num_envs = observations, actions, 1

    with pytest.raises(ParameterError, match=rf"(?s){told}=.* is not allowed; buffers of Stable-Baselines3 hold"):
        play(Env(), "odd", 64, progress=False)


def test_of_large_observations_fewer_are_kept(colours, monkeypatch):
    from sb3_extra_buffers.advisor import stream

    monkeypatch.setattr(stream, "_MAX_NBYTES", 70 * 2 * 3 * 40 * 36)
    assert len(play(make(colours), "colours", 500, progress=False).steps) == 70
