"""``eval_model``: what it returns, and what it stores, transition by transition."""

import numpy as np
import pytest
from gymnasium import spaces
from scripted_play import ACTIONS, ScriptedModel, length, played, score, scripted_envs
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer

from sb3_extra_buffers.compressed import CompressedDictReplayBuffer, CompressedReplayBuffer
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.training_utils.eval_model import eval_model

SIZES = [(1, 1), (1, 3), (2, 1), (3, 2), (4, 3)]


def shares(n_eps, n_envs):
    return [n_eps // n_envs + (env < n_eps % n_envs) for env in range(n_envs)]


def new_buffer(kind, env, n_envs, **kwargs):
    return kind(400 * n_envs, env.observation_space, env.action_space, device="cpu", n_envs=n_envs, **kwargs)


@pytest.mark.parametrize("monitored", [True, False], ids=["monitor", "bare"])
@pytest.mark.parametrize("n_envs", [1, 3])
def test_each_environment_plays_its_share_and_its_returns_are_known(monitored, n_envs):
    # A13: without Monitor, the published function never came to an end.
    env = scripted_envs(n_envs) if monitored else scripted_envs(n_envs, wrap=lambda env: env)
    scores, seconds = eval_model(7, env, ScriptedModel())
    expected = [score(env, episode) for env, share in enumerate(shares(7, n_envs)) for episode in range(share)]
    assert sorted(scores) == sorted(expected)
    assert seconds == []  # B6: no buffer is the default


@pytest.mark.parametrize("n_eps", [1, 2, 5])
def test_fewer_episodes_than_environments_are_played_by_the_first(n_eps):
    scores, _ = eval_model(n_eps, scripted_envs(4), ScriptedModel())
    assert sorted(scores) == sorted(
        score(env, episode) for env, share in enumerate(shares(n_eps, 4)) for episode in range(share)
    )


@pytest.mark.parametrize(("times", "n_envs"), SIZES)
@pytest.mark.parametrize("kind", [ReplayBuffer, CompressedReplayBuffer])
def test_every_stored_transition_is_one_that_happened(stored, kind, times, n_envs):
    env = scripted_envs(times * n_envs)
    buffer = new_buffer(kind, env, n_envs)
    eval_model(11 * times, env, ScriptedModel(), buffer=buffer)
    columns = stored(buffer)
    found = [moment for column in columns for moment in column]
    assert len(set(found)) == len(found) > 30
    counted = played(shares(11 * times, times * n_envs))
    if times == 1:
        assert counted <= set(found)
        assert all(moment[0] == number for number, column in enumerate(columns) for moment in column)
    else:
        assert set(found) <= counted
        # What is left out is what would not fill a row.
        assert n_envs > 1 or set(found) == counted


@pytest.mark.parametrize(("times", "n_envs"), SIZES)
@pytest.mark.parametrize("kind", [DictReplayBuffer, CompressedDictReplayBuffer])
def test_dict_observations_are_stored_key_by_key(stored, kind, times, n_envs):
    env = scripted_envs(times * n_envs, is_dict=True)
    buffer = new_buffer(kind, env, n_envs)
    eval_model(6 * times, env, ScriptedModel(), buffer=buffer)  # B10
    assert len(stored(buffer)[0]) > 10


@pytest.mark.parametrize(("times", "n_envs"), [(1, 2), (2, 1), (3, 2)])
@pytest.mark.parametrize("kind", [ReplayBuffer, CompressedReplayBuffer])
def test_with_one_observation_per_step_the_successor_is_of_the_same_episode(stored, kind, times, n_envs):
    # A11: the published function mixed environments in one column, so that no successor was right.
    env = scripted_envs(times * n_envs)
    buffer = new_buffer(kind, env, n_envs, optimize_memory_usage=True, handle_timeout_termination=False)
    eval_model(10 * times, env, ScriptedModel(), buffer=buffer)
    assert len(stored(buffer)[0]) > 20


def test_the_last_observation_of_an_episode_is_not_the_first_of_the_next():
    # A12: the published function stored what the environment showed after it was reset.
    env = scripted_envs(2)
    buffer = new_buffer(ReplayBuffer, env, 2)
    eval_model(8, env, ScriptedModel(), buffer=buffer)
    rows, columns = np.nonzero(buffer.dones[: buffer.pos])
    assert len(rows) >= 8
    for env, episode, step in buffer.next_observations[rows, columns].tolist():
        assert step == length(env, episode)


@pytest.mark.parametrize("as_what", [list, tuple, iter])
def test_several_buffers_get_the_same_stream_and_their_own_time(stored, as_what):
    env = scripted_envs(4)
    buffers = [new_buffer(ReplayBuffer, env, 4), new_buffer(CompressedReplayBuffer, env, 2)]
    buffers.append(new_buffer(ReplayBuffer, env, 2))
    _, seconds = eval_model(16, env, ScriptedModel(), buffer=as_what(buffers))
    assert len(seconds) == 3
    assert min(seconds) > 0
    assert len(stored(buffers[0])) == 4
    assert stored(buffers[1]) == stored(buffers[2])


def test_a_buffer_may_wrap_while_it_is_filled():
    env = scripted_envs(2)
    buffer = ReplayBuffer(10, env.observation_space, env.action_space, device="cpu")
    eval_model(8, env, ScriptedModel(), buffer=buffer)
    assert buffer.full
    moments = buffer.observations[:, 0].tolist()
    assert all((buffer.next_observations[row, 0] - moment).tolist() == [0, 0, 1] for row, moment in enumerate(moments))


@pytest.mark.parametrize("deterministic", [True, False])
def test_the_model_is_asked_as_wished(deterministic):
    model = ScriptedModel()
    eval_model(2, scripted_envs(1), model, deterministic=deterministic)
    assert model.asked == {deterministic}


@pytest.mark.parametrize("close_env", [True, False])
def test_environments_are_closed_if_wished(close_env, monkeypatch):
    env = scripted_envs(2)
    closed = []
    monkeypatch.setattr(env, "close", lambda: closed.append(True))
    eval_model(2, env, ScriptedModel(), close_env)
    assert closed == [True] * close_env


def test_environments_are_closed_also_after_an_error(monkeypatch):
    env = scripted_envs(2)
    closed = []
    monkeypatch.setattr(env, "close", lambda: closed.append(True))
    with pytest.raises(ParameterError):
        eval_model(0, env, ScriptedModel())
    assert closed == [True]


def test_a_bare_environment_is_wrapped():
    env = scripted_envs(1).envs[0]
    assert eval_model(3, env, ScriptedModel())[0] == [score(0, episode) for episode in range(3)]


@pytest.mark.parametrize("n_eps", [0, -3])
def test_no_episodes_are_refused(n_eps):
    with pytest.raises(ParameterError, match=r"n_eps=.*at least 1"):
        eval_model(n_eps, scripted_envs(1), ScriptedModel())


def test_a_number_of_environments_that_does_not_fit_is_refused():
    env = scripted_envs(3)
    with pytest.raises(ParameterError, match=r"n_envs=2 .*number of environments, 3, must be a multiple"):
        eval_model(3, env, ScriptedModel(), buffer=new_buffer(ReplayBuffer, env, 2))


@pytest.mark.parametrize("buffer", [7, "buffer", {1, 2}, [object()]])
def test_what_cannot_be_filled_is_refused(buffer):
    with pytest.raises(ParameterError, match="replay buffer, a record buffer or a list"):
        eval_model(1, scripted_envs(1), ScriptedModel(), buffer=buffer)


def test_a_rollout_buffer_is_refused_and_the_way_out_is_named():
    from stable_baselines3.common.buffers import RolloutBuffer

    buffer = RolloutBuffer(5, spaces.Box(0, 1, (3,)), spaces.Discrete(ACTIONS), device="cpu")
    with pytest.raises(ParameterError, match="DummyVecRolloutBuffer"):
        eval_model(1, scripted_envs(1), ScriptedModel(), buffer=buffer)
