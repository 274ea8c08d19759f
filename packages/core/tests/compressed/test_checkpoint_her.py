"""Hindsight buffers that were saved and loaded relabel the same goals, with and without infos."""

import numpy as np
import pytest
from gymnasium import spaces

from sb3_extra_buffers.compressed import CompressedHerReplayBuffer
from sb3_extra_buffers.errors import ParameterError

pytestmark = pytest.mark.usefixtures("no_waiting")
ROWS, N_ENVS = 20, 2
ACTIONS = spaces.Box(-2, 2, (2,), np.float32)


@pytest.fixture
def make(screen, idle):
    goal = spaces.Box(-10, 10, (70,), np.float32)
    space = spaces.Dict({"observation": screen(32), "achieved_goal": goal, "desired_goal": goal})

    def make(**options):
        env = idle(space, ACTIONS, N_ENVS)
        return CompressedHerReplayBuffer(ROWS * N_ENVS, space, ACTIONS, env, "cpu", N_ENVS, **options), env

    return make


@pytest.mark.parametrize("copy_info_dict", [False, True])
@pytest.mark.parametrize("strategy", ["future", "final", "episode"])
def test_goals_and_rewards_are_those_of_the_buffer_that_was_saved(
    copy_info_dict, strategy, tmp_path, make, walk, feed, same_samples
):
    options = {"copy_info_dict": copy_info_dict, "goal_selection_strategy": strategy, "n_sampled_goal": 3}
    (ours, env), (twin, _) = make(**options), make(**options)
    path = tmp_path / "checkpoint"
    for number, step in enumerate(walk(ours.observation_space, ACTIONS, N_ENVS, 55)):
        feed(step, ours, twin)
        if number % 9 == 2:
            twin.save(path)
            twin = CompressedHerReplayBuffer.load(path, "cpu", env=env)
        if number % 7 == 6:
            same_samples(twin, ours, 30, seed=number)
    same_samples(twin, ours, 30)
    assert (twin.her_ratio, twin.goal_selection_strategy) == (ours.her_ratio, ours.goal_selection_strategy)


def test_without_an_environment_it_is_set_later_as_after_a_pickle(tmp_path, make, walk, feed, same_samples):
    buffer, env = make()
    for step in walk(buffer.observation_space, ACTIONS, N_ENVS, 30):
        feed(step, buffer)
    buffer.save(tmp_path / "checkpoint")
    loaded = CompressedHerReplayBuffer.load(tmp_path / "checkpoint", "cpu")
    loaded.set_env(env)
    same_samples(loaded, buffer, 30)


def test_infos_of_every_kind_of_number_come_back_and_others_are_refused(tmp_path, make, walk):
    buffer, env = make(copy_info_dict=True)
    steps = walk(buffer.observation_space, ACTIONS, N_ENVS, 2)
    infos = [{"a": np.arange(3.5), "b": [1, "x", None], "c": {"d": True, "e": np.float32(0.1)}}, {}]
    obs, next_obs, action, reward, done, _ = next(steps)
    buffer.add(obs, next_obs, action, reward, done, infos)
    buffer.save(tmp_path / "checkpoint")
    found = CompressedHerReplayBuffer.load(tmp_path / "checkpoint", "cpu", env=env).infos[0]
    assert found[0]["a"].tobytes() == infos[0]["a"].tobytes()
    assert list(found[0]["b"]) == infos[0]["b"]
    assert found[0]["c"] == {"d": True, "e": float(np.float32(0.1))}
    assert found[1] == {}
    obs, next_obs, action, reward, done, _ = next(steps)
    buffer.add(obs, next_obs, action, reward, done, [{"env": object()}, {}])
    with pytest.raises(ParameterError, match="infos"):
        buffer.save(tmp_path / "checkpoint")
    assert CompressedHerReplayBuffer.load(tmp_path / "checkpoint", "cpu").pos == 1
