"""Recordings: one environment, its episodes that count, frame by frame."""

import numpy as np
import pytest
from scripted_play import ScriptedModel, action, is_timeout, length, picture, reward, scripted_envs
from stable_baselines3.common.buffers import DictReplayBuffer

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.training_utils.eval_model import eval_model


class Tape:
    """Takes what a record buffer takes, and keeps it as it came."""

    def __init__(self):
        self.steps = []

    def add(self, frame, reward, action, features=None, *, done=False):
        assert features is None
        self.steps.append((frame.copy(), reward, action, done))


class TapeOfEnds:
    """Takes one feature with each step."""

    feature_num = 1

    def __init__(self):
        self.ends = []

    def add(self, frame, reward, action, features=None, *, done=False):
        (cut_off,) = features
        assert done or not cut_off
        if done:
            self.ends.append(cut_off)


def assert_recorded(tape, env, episodes, frame):
    moments = [(env, episode, step) for episode in range(episodes) for step in range(length(env, episode))]
    assert len(tape.steps) == len(moments)
    for (seen, got, chosen, done), moment in zip(tape.steps, moments):
        assert np.array_equal(seen, frame(*moment))
        assert (got, chosen) == (reward(*moment), action(*moment))
        assert done is (moment[2] + 1 == length(*moment[:2]))


@pytest.mark.parametrize("n_envs", [1, 3])
def test_what_the_model_sees_is_recorded_with_what_it_does_and_gets(n_envs):
    tape = Tape()
    _, seconds = eval_model(3 * n_envs, scripted_envs(n_envs), ScriptedModel(), buffer=tape)  # B10
    assert_recorded(tape, 0, 3, lambda *moment: np.array(moment))
    assert len(seconds) == 1


@pytest.mark.parametrize("number", [0, 2])
def test_any_environment_can_be_recorded(number):
    tape = Tape()
    eval_model(7, scripted_envs(3), ScriptedModel(), buffer=[tape], record_env=number)
    assert_recorded(tape, number, 3 if number == 0 else 2, lambda *moment: np.array(moment))


@pytest.mark.parametrize("number", [0, 1])
def test_the_only_feature_of_a_recording_says_what_was_cut_off(number):
    tape = TapeOfEnds()
    eval_model(12, scripted_envs(2), ScriptedModel(), buffer=tape, record_env=number)
    assert tape.ends == [is_timeout(number, episode) for episode in range(6)]
    assert len(set(tape.ends)) == 2


def test_what_an_environment_renders_can_be_recorded():
    tape = Tape()
    eval_model(4, scripted_envs(2), ScriptedModel(), buffer=tape, record_env=1, record_frames="render")
    assert_recorded(tape, 1, 2, picture)


def test_a_key_of_the_observations_can_be_recorded_while_all_are_stored(stored):
    env = scripted_envs(2, is_dict=True)
    tape = Tape()
    buffer = DictReplayBuffer(100, env.observation_space, env.action_space, device="cpu", n_envs=2)
    _, seconds = eval_model(4, env, ScriptedModel(), buffer=[buffer, tape], record_frames="image")
    assert_recorded(tape, 0, 2, picture)
    assert {moment for moment in stored(buffer)[0] if moment[1] < 2} == {
        (0, episode, step) for episode in range(2) for step in range(length(0, episode))
    }
    assert len(seconds) == 2


@pytest.mark.parametrize(
    ("is_dict", "arguments", "message"),
    [
        (False, {"record_env": 2}, r"record_env=2 .*0 to 1"),
        (False, {"record_env": -1}, r"record_env=-1 .*0 to 1"),
        (False, {"record_frames": "image"}, r"record_frames='image' .*must be 'render', or left out"),
        (True, {}, r"record_frames=None .*a key of the observations: \['image', 'place'\]"),
        (True, {"record_frames": "imgae"}, r"record_frames='imgae' .*a key of the observations"),
    ],
)
def test_what_cannot_be_recorded_is_refused(is_dict, arguments, message):
    with pytest.raises(ParameterError, match=message):
        eval_model(2, scripted_envs(2, is_dict=is_dict), ScriptedModel(), buffer=Tape(), **arguments)


@pytest.mark.parametrize(("n_eps", "number", "last"), [(1, 1, 0), (2, 2, 1)])
def test_an_environment_that_plays_nothing_that_counts_cannot_be_recorded(n_eps, number, last):
    tape = Tape()
    message = rf"record_env={number} .*only the first {n_eps} of 3 environments have an episode.*play more episodes"
    with pytest.raises(ParameterError, match=message):
        eval_model(n_eps, scripted_envs(3), ScriptedModel(), buffer=tape, record_env=number)
    eval_model(n_eps, scripted_envs(3), ScriptedModel(), buffer=tape, record_env=last)
    assert_recorded(tape, last, 1, lambda *moment: np.array(moment))


def test_an_environment_that_renders_no_image_is_refused(monkeypatch):
    env = scripted_envs(1)
    monkeypatch.setattr(env.envs[0].unwrapped, "render", lambda: None)
    with pytest.raises(ParameterError, match=r"render_mode='rgb_array'.*It renders NoneType"):
        eval_model(2, env, ScriptedModel(), buffer=Tape(), record_frames="render")
