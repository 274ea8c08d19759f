"""Which episodes count: what ``Monitor`` tells where there is one, what happens where there is none."""

import gymnasium as gym
import numpy as np
import pytest
from scripted_play import ScriptedModel, length, score, scripted_envs
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecMonitor

from sb3_extra_buffers.training_utils.eval_model import EpisodeCounter, eval_model, process_outcome


class Sign(gym.RewardWrapper):
    """Clips rewards, as ``AtariWrapper`` does."""

    def reward(self, reward):
        return np.sign(reward)


class Lives(gym.Wrapper):
    """Says that an episode is over after each two steps, as ``AtariWrapper`` does for lives."""

    def __init__(self, env):
        super().__init__(env)
        self.is_game_over, self.steps = True, 0

    def step(self, action):
        observation, reward, over, late, info = self.env.step(action)
        self.steps, self.is_game_over = self.steps + 1, over or late
        return observation, reward, over or self.steps % 2 == 0, late, info

    def reset(self, **kwargs):
        if self.is_game_over:
            self.steps = 0
            return self.env.reset(**kwargs)
        return self.unwrapped._observation(), {}


class Forgetful(ScriptedModel):
    """Does not mind that episodes begin anywhere."""

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return super().predict(observation, (observation[:, 2],), observation[:, 2] == 0, deterministic)


def expected(shares):
    return sorted(score(env, episode) for env, share in enumerate(shares) for episode in range(share))


def test_below_a_wrapper_that_clips_rewards_monitor_tells_the_returns():
    scores, _ = eval_model(5, scripted_envs(2, wrap=lambda env: Sign(Monitor(env))), ScriptedModel())
    assert sorted(scores) == expected([3, 2])


def test_without_monitor_the_rewards_that_the_agent_gets_are_added_up():
    scores, _ = eval_model(4, scripted_envs(2, wrap=Sign), ScriptedModel())
    # Environment 0 gets nothing for the first step of its first episode, all others give one for each step.
    steps = [length(0, 0) - 1, length(0, 1), length(1, 0), length(1, 1)]
    assert sorted(scores) == sorted(steps)


def test_a_life_that_is_lost_is_no_end_if_monitor_does_not_say_so():
    scores, _ = eval_model(6, scripted_envs(3, wrap=lambda env: Lives(Monitor(env))), Forgetful())
    assert sorted(scores) == expected([2, 2, 2])


def test_a_monitor_around_all_environments_counts_too():
    env = VecMonitor(scripted_envs(2, wrap=lambda env: env))
    scores, _ = eval_model(4, env, ScriptedModel())
    assert sorted(scores) == expected([2, 2])


def test_an_episode_in_the_info_of_an_unmonitored_environment_is_not_believed():
    env = scripted_envs(2, wrap=lambda env: env)
    counter = EpisodeCounter(env, 2)
    assert counter.take(np.array([1.0, 2.0]), np.array([False, True]), [{"episode": {"r": 7.0}}, {}]) == 1
    assert counter.scores == [2.0]
    assert counter.counting.tolist() == [True, False]


def test_surplus_episodes_do_not_count():
    counter = EpisodeCounter(scripted_envs(2, wrap=lambda env: env), 3)
    infos = [{}, {}]
    for ended in (2, 1, 0):
        assert counter.take(np.array([1.0, 5.0]), np.array([True, True]), infos) == ended
    assert counter.scores == [1.0, 5.0, 1.0]


@pytest.mark.parametrize("n_envs", [1, 3])
def test_the_outcome_of_a_step_is_nan_where_no_episode_ended(n_envs):
    infos = [{"episode": {"r": 2.5, "l": 3}}] + [{"TimeLimit.truncated": False}] * (n_envs - 1)
    returns, ended = process_outcome(infos)
    assert returns[0] == 2.5
    assert np.isnan(returns[1:]).all()
    assert ended.tolist() == [True] + [False] * (n_envs - 1)
