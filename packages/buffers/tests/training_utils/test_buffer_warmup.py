"""``warm_up``: how many episodes it plays, and what it refuses."""

import pytest
from scripted_play import ScriptedModel, played, scripted_envs
from stable_baselines3 import DQN
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.env_util import make_vec_env

from sb3_extra_buffers.compressed import CompressedReplayBuffer
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.training_utils.buffer_warmup import warm_up


def new_buffer(env, size, n_envs):
    return CompressedReplayBuffer(size, env.observation_space, env.action_space, device="cpu", n_envs=n_envs)


def test_as_many_episodes_as_were_asked_for_are_stored(stored):
    env = scripted_envs(4)
    buffer = new_buffer(env, 1000, 1)
    scores, seconds = warm_up(buffer, 1, env, ScriptedModel(), 10)  # B7: published 0.5 could not do this
    assert len(scores) == 10
    assert len(seconds) == 1
    (column,) = stored(buffer)
    assert set(column) == played([3, 3, 2, 2])


@pytest.mark.parametrize(("size", "n_envs", "mean", "episodes"), [(100, 2, 5, 18), (101, 2, 5.5, 16), (80, 1, 4.0, 18)])
def test_the_mean_length_of_an_episode_fills_nine_tenths(size, n_envs, mean, episodes):
    env = scripted_envs(2 * n_envs)
    buffer = new_buffer(env, size, n_envs)
    scores, _ = warm_up(buffer, n_envs, env, ScriptedModel(), mean_ep_len=mean)
    assert len(scores) == episodes == round(buffer.buffer_size * n_envs * 0.9 / mean)


def test_several_buffers_are_filled_alike(stored):
    env = scripted_envs(2)
    buffers = [new_buffer(env, 200, 2), ReplayBuffer(200, env.observation_space, env.action_space, "cpu", n_envs=2)]
    _, seconds = warm_up(buffers, 2, env, ScriptedModel(), 6)
    assert len(seconds) == 2
    assert stored(buffers[0]) == stored(buffers[1])


class Tape:
    """Takes what a record buffer takes, and counts it."""

    def __init__(self, max_size=None):
        self.steps, self.episodes = 0, 0
        if max_size is not None:
            self.max_size = max_size

    def add(self, frame, reward, action, features=None, *, done=False):
        self.steps, self.episodes = self.steps + 1, self.episodes + done


def test_a_recording_is_made_beside_a_buffer_and_does_not_say_how_much_is_played(stored):
    env = scripted_envs(2)
    buffer, tape = new_buffer(env, 100, 1), Tape(max_size=7)
    scores, seconds = warm_up([tape, buffer], 1, env, ScriptedModel(), mean_ep_len=5)
    assert len(scores) == 18
    assert len(seconds) == 2
    assert tape.episodes == 9
    assert tape.steps == sum(moment[0] == 0 for moment in stored(buffer)[0])


def test_a_recording_alone_is_filled_to_nine_tenths():
    tape = Tape(max_size=60)
    scores, _ = warm_up(tape, 1, scripted_envs(3), ScriptedModel(), mean_ep_len=6)
    assert (tape.episodes, len(scores)) == (9, 27)  # 9 in each environment, of which one is recorded
    tape = Tape()
    warm_up([tape], 3, scripted_envs(3), ScriptedModel(), 3)
    assert tape.episodes == 1


def test_what_is_recorded_can_be_chosen():
    env, tape = scripted_envs(2, is_dict=True), Tape()
    warm_up(tape, 1, env, ScriptedModel(), 5, record_env=1, record_frames="image")
    assert tape.episodes == 2


def test_the_environments_stay_open_and_training_goes_on_with_the_buffer():
    env = make_vec_env("CartPole-v1", 2, seed=0)
    arguments = {"replay_buffer_class": CompressedReplayBuffer, "buffer_size": 1000, "learning_starts": 0, "seed": 1}
    model = DQN("MlpPolicy", env, device="cpu", **arguments)
    warm_up(model.replay_buffer, 2, env, model, warmup_episodes=4)
    before = model.replay_buffer.pos
    assert before > 10
    model.learn(40)
    assert model.replay_buffer.pos == before + 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "mean_ep_len=None .*it or warmup_episodes must be given"),
        ({"mean_ep_len": 0}, "mean_ep_len=0 .*more than 0"),
        ({"mean_ep_len": float("nan")}, "mean_ep_len=nan .*more than 0"),
        ({"warmup_episodes": 3}, "warmup_episodes=3 .*each of 4 environments must play at least one"),
        ({"mean_ep_len": 1000}, "warmup_episodes=0 .*each of 4 environments"),
        ({"warmup_episodes": 8, "n_envs": 3}, "n_envs=3 .*warmup_env, 4, must be a multiple"),
        ({"warmup_episodes": 8, "n_envs": 0}, "n_envs=0 .*must be a multiple"),
        ({"warmup_episodes": 8, "n_envs": 4}, "n_envs=4 .*CompressedReplayBuffer was made for 2"),
        ({"warmup_episodes": 8, "buffer": None}, "buffer=.*must be a replay buffer"),
        ({"mean_ep_len": 5, "buffer": Tape()}, "warmup_episodes=None .*Tape does not say how many steps it keeps"),
    ],
)
def test_requests_that_make_no_sense_are_refused(arguments, message):
    env = scripted_envs(4)
    request = {"buffer": new_buffer(env, 100, 2), "n_envs": 2, **arguments}
    with pytest.raises(ParameterError, match=message):
        warm_up(warmup_env=env, warmup_model=ScriptedModel(), **request)
