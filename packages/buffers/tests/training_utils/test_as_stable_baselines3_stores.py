"""The same model in the same environments fills a buffer as its own training would, bit by bit."""

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3 import DQN, SAC, HerReplayBuffer
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.envs import BitFlippingEnv
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from sb3_extra_buffers.compressed import CompressedHerReplayBuffer
from sb3_extra_buffers.training_utils.eval_model import eval_model

SEED = 3
# Off-policy training that only collects: it starts at once, and never makes a gradient step.
COLLECT = {"learning_starts": 0, "gradient_steps": 0, "buffer_size": 2000, "device": "cpu", "seed": SEED}


def seeded(name, n_envs, **kwargs):
    return make_vec_env(name, n_envs, seed=SEED, env_kwargs=kwargs)


def assert_same_content(ours, theirs):
    assert 20 < ours.pos <= theirs.pos
    assert ours.dones[: ours.pos].any()
    for name in ("observations", "next_observations", "actions", "rewards", "dones", "timeouts"):
        own, other = (getattr(buffer, name)[: ours.pos] for buffer in (ours, theirs))
        assert own.dtype == other.dtype
        assert own.tobytes() == other.tobytes(), name


def test_actions_of_a_discrete_space():
    model = DQN("MlpPolicy", seeded("CartPole-v1", 2), exploration_initial_eps=0, exploration_final_eps=0, **COLLECT)
    model.learn(200)
    env = seeded("CartPole-v1", 2)
    buffer = ReplayBuffer(2000, env.observation_space, env.action_space, device="cpu", n_envs=2)
    eval_model(6, env, model, buffer=buffer)
    assert_same_content(buffer, model.replay_buffer)


@pytest.mark.parametrize("normalized", [False, True], ids=["plain", "VecNormalize"])
def test_actions_of_a_box_and_observations_that_are_normalized_for_the_model(normalized):
    def envs():
        env = seeded("Pendulum-v1", 2)
        return VecNormalize(env, norm_reward=True) if normalized else env

    model = SAC("MlpPolicy", envs(), **COLLECT)
    set_random_seed(11)
    model.learn(400)
    set_random_seed(11)
    env = envs()
    buffer = ReplayBuffer(2000, env.observation_space, env.action_space, device="cpu", n_envs=2)
    scores, _ = eval_model(2, env, model, buffer=buffer, deterministic=False)
    assert_same_content(buffer, model.replay_buffer)
    # Pendulum ends by its time limit alone: all that was stored belongs to the two episodes.
    assert np.allclose(sorted(scores), sorted(buffer.rewards[: buffer.pos].sum(axis=0)), rtol=1e-5)


@pytest.mark.parametrize("kind", [HerReplayBuffer, CompressedHerReplayBuffer])
def test_goals_can_be_replaced_in_what_was_stored(kind):
    def flips():
        return DummyVecEnv([lambda: gym.wrappers.TimeLimit(BitFlippingEnv(n_bits=6, max_steps=9), 9)] * 2)

    env = flips()
    model = DQN("MultiInputPolicy", env, replay_buffer_class=HerReplayBuffer, **COLLECT)
    buffer = kind(500, env.observation_space, env.action_space, env=env, device="cpu", n_envs=2)
    eval_model(5, flips(), model, buffer=buffer)
    # The episode that was cut off when enough were played does not go on in what is added next.
    assert (buffer._current_ep_start == buffer.pos).all()
    assert (buffer.ep_length[: buffer.pos] > 0).all()
    batch = buffer.sample(64)
    assert set(batch.rewards.unique().tolist()) <= {-1.0, 0.0}
    reached = (batch.next_observations["achieved_goal"] == batch.next_observations["desired_goal"]).all(dim=1)
    assert ((batch.rewards[:, 0] == 0) == reached).all()


@pytest.mark.parametrize("n_envs", [1, 4])
def test_the_returns_are_those_of_evaluate_policy(n_envs):
    model = DQN("MlpPolicy", seeded("CartPole-v1", 1), **COLLECT)
    theirs, _ = evaluate_policy(model, seeded("CartPole-v1", n_envs), 8, return_episode_rewards=True)
    assert eval_model(8, seeded("CartPole-v1", n_envs), model)[0] == theirs
