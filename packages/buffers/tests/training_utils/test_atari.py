"""``make_env``: the environments that Stable-Baselines3 would make, ready for a ``CnnPolicy``."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecFrameStack, VecTransposeImage

from sb3_extra_buffers.compressed import CompressedReplayBuffer
from sb3_extra_buffers.errors import MissingExtraError, ParameterError
from sb3_extra_buffers.training_utils.atari import make_env
from sb3_extra_buffers.training_utils.eval_model import eval_model

ale_py = pytest.importorskip("ale_py", reason="games come with the extra «atari»")
pytest.importorskip("cv2", reason="it comes with the extra «atari»")

PONG = "PongNoFrameskip-v4"


def played(env, steps=12):
    """What a player with fixed actions sees and gets."""
    seen = [env.reset()]
    rewards = []
    for step in range(steps):
        observations, reward, _, _ = env.step(np.arange(env.num_envs) * (1 + step) % env.action_space.n)
        seen.append(observations)
        rewards.append(reward)
    env.close()
    return np.stack(seen), np.stack(rewards)


def as_published(n_envs, framestack, seed):
    import gymnasium

    gymnasium.register_envs(ale_py)
    env = make_atari_env(PONG, n_envs, seed=seed, vec_env_cls=DummyVecEnv)
    return VecTransposeImage(VecFrameStack(env, framestack) if framestack > 1 else env)


@pytest.mark.parametrize(("n_envs", "framestack"), [(1, 4), (2, 1), (2, 3)])
def test_the_same_seed_gives_the_games_of_stable_baselines3(n_envs, framestack):
    env = make_env(PONG, n_envs, DummyVecEnv, framestack, seed=7)
    assert isinstance(env, VecTransposeImage)
    assert env.observation_space.shape == (framestack, 84, 84)
    assert env.observation_space.dtype == np.uint8
    for ours, theirs in zip(played(env), played(as_published(n_envs, framestack, 7))):
        assert np.array_equal(ours, theirs)


def test_processes_play_the_same_games():
    env = make_env(PONG, 2, seed=3)
    assert isinstance(env.unwrapped, SubprocVecEnv)
    seen, rewards = played(env, 6)
    expected, expected_rewards = played(make_env(PONG, 2, DummyVecEnv, seed=3), 6)
    assert np.array_equal(seen, expected)
    assert np.array_equal(rewards, expected_rewards)


def test_a_single_environment_takes_no_process():
    env = make_env(PONG, 1, SubprocVecEnv)
    assert isinstance(env.unwrapped, DummyVecEnv)
    assert env.env_is_wrapped(Monitor) == [True]
    env.close()


def test_further_arguments_go_to_the_emulator_and_to_the_wrapper():
    env = make_env(PONG, 1, wrapper_kwargs={"screen_size": 42}, full_action_space=True)
    assert env.action_space.n == 18
    assert env.observation_space.shape == (4, 42, 42)
    env.close()


@pytest.mark.parametrize("arguments", [{"n_envs": 0}, {"n_envs": 2, "framestack": 0}])
def test_counts_below_one_are_refused(arguments):
    with pytest.raises(ParameterError, match="must be at least 1"):
        make_env(PONG, **arguments)


def test_an_unknown_game_is_refused_with_what_gymnasium_suggests():
    with pytest.raises(ParameterError, match="Did you mean: `PongNoFrameskip`"):
        make_env("PognNoFrameskip-v4", 2)


@pytest.mark.parametrize(("module", "package"), [("ale_py", "ale-py"), ("cv2", "opencv-python-headless")])
def test_without_its_libraries_it_says_which_extra_to_install(monkeypatch, module, package):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"'{package}'.*(sb3-extra-buffers|packages/buffers)\[atari\]"):
        make_env(PONG, 1)


def test_importing_it_registers_nothing_and_prints_nothing():
    code = """
        import sys
        import gymnasium
        known = set(gymnasium.registry)
        import sb3_extra_buffers.training_utils.atari
        assert set(gymnasium.registry) == known
        assert "ale_py" not in sys.modules
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert ran.stdout == ran.stderr == ""


class Guessing:
    """Acts at random, the same every time."""

    def __init__(self, actions):
        self.actions, self.rng = actions, np.random.default_rng(0)

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return self.rng.integers(0, self.actions, len(observation)), None


@pytest.mark.parametrize("n_envs", [1, 2])
def test_an_evaluation_counts_games_and_stores_lives(n_envs):
    env = make_env("BreakoutNoFrameskip-v4", 2, DummyVecEnv, seed=1)
    buffer = CompressedReplayBuffer(4000, env.observation_space, env.action_space, device="cpu", n_envs=n_envs)
    scores, _ = eval_model(2, env, Guessing(env.action_space.n), buffer=buffer)
    assert not buffer.full
    dones, rewards = buffer.dones[: buffer.pos], buffer.rewards[: buffer.pos]
    lives = 5 * len(scores)
    assert dones.sum() == lives if n_envs == 1 else dones.sum() >= lives
    # Rewards are clipped for the agent, and Monitor knows the true ones.
    assert set(rewards.ravel().tolist()) <= {0.0, 1.0}
    assert sum(scores) >= (rewards.sum() if n_envs == 1 else 1)
    for column in range(n_envs):
        for row in range(buffer.pos - 1):
            goes_on = np.array_equal(buffer.reconstruct_nextobs(row, column), buffer.reconstruct_obs(row + 1, column))
            assert goes_on != dones[row, column]
