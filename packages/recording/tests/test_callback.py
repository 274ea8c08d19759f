"""``RecordCallback`` records episodes during training."""

import sys

import av
import gymnasium
import numpy as np
import pytest
from counting_env import CountingEnv
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_extra_buffers.errors import MissingExtraError, ObservationError, ParameterError
from sb3_extra_buffers.recording import FramelessRecordBuffer, RecordCallback, VecRecord


def ppo(count=2, **options):
    envs = DummyVecEnv([lambda: CountingEnv(ends=(4,), **options) for _ in range(count)])
    return PPO("MlpPolicy", envs, n_steps=16, batch_size=16, n_epochs=1, policy_kwargs={"net_arch": [4]}, device="cpu")


def dqn():
    env = CountingEnv(ends=(4,))
    options = {"learning_starts": 8, "buffer_size": 50, "train_freq": 1}
    return DQN("MlpPolicy", env, policy_kwargs={"net_arch": [4]}, device="cpu", **options)


def shades(recording):
    return recording[:].frames[:, 0, 0, 0].tolist()


@pytest.mark.parametrize("model", [ppo, dqn])
def test_training_episodes_are_recorded_at_the_given_interval(model):
    callback = RecordCallback(20, episodes=2, keep=9)
    model = model()
    model.learn(64, callback=callback)
    first = callback.recordings[0]
    assert shades(first) == [0, 1, 2, 3, 4, 16, 17, 18, 19, 20]
    assert first[:].dones.tolist() == [False, False, False, False, True] * 2
    clip = first[:]
    inside = ~clip.dones
    count = np.tile(np.arange(1, 5), 2)
    assert (clip.rewards[inside] == clip.actions[inside] + count).all()
    # With two environments, an episode of four steps takes eight.
    starts = [0, 48, 96] if model.n_envs == 2 else [0, 80, 160, 240]
    assert [shades(recording)[0] for recording in callback.recordings] == starts
    assert all(len(recording) == 10 for recording in list(callback.recordings)[:2])


def test_an_unfinished_episode_is_kept_when_training_ends():
    callback = RecordCallback(10_000, episodes=1_000)
    ppo().learn(32, callback=callback)
    assert len(callback.recordings) == 1
    assert len(callback.recordings[0]) == 16 + 4


def test_continued_training_waits_for_the_next_episode():
    model, callback = dqn(), RecordCallback(10_000)
    model.learn(6, callback=RecordCallback(10_000))
    model.learn(12, callback=callback, reset_num_timesteps=False)
    assert shades(callback.recordings[0]) == [32, 33, 34, 35, 36]


def test_recorded_actions_are_the_clipped_actions():
    callback = RecordCallback(10_000, episodes=8)
    model = ppo(vector=True)
    model.policy.log_std.data += 3
    model.learn(64, callback=callback)
    clip = callback.recordings[0][:]
    assert np.abs(clip.actions).max() == 2
    steps = np.tile([1, 2, 3, 4, 0], 8)
    assert np.allclose(clip.rewards, clip.actions.sum(axis=1) + steps)


def test_evaluation_episodes_are_recorded_with_deterministic_actions():
    stage = CountingEnv(ends=(3,), render_mode="rgb_array")
    callback = RecordCallback(20, episodes=2, eval_env=stage, what="render", keep=9)
    model = ppo()
    model.learn(64, callback=callback)
    # At 0, 20, 40 and 60 steps. Each evaluation resets the environment once more than there are episodes.
    starts = [100 + 48 * number for number in range(4)]
    assert [shades(recording)[0] for recording in callback.recordings] == starts
    assert all(len(recording) == 8 for recording in callback.recordings)
    last = callback.recordings[-1][:]
    assert last.frames.shape[1:] == (50, 60, 3)
    assert last.dones.tolist() == [False, False, False, True] * 2


def test_one_of_several_environments_can_be_chosen():
    stage = DummyVecEnv([lambda: CountingEnv(ends=(2,)), lambda: CountingEnv(ends=(5,))])
    callback = RecordCallback(10_000, eval_env=stage, env=1)
    ppo().learn(32, callback=callback)
    assert shades(callback.recordings[0]) == [0, 1, 2, 3, 4, 5]


def test_only_the_newest_recordings_are_kept():
    callback = RecordCallback(8, keep=2)
    ppo(1).learn(64, callback=callback)
    assert len(callback.recordings) == 2
    assert shades(callback.recordings[1])[0] > shades(callback.recordings[0])[0] > 0


def test_videos_are_named_by_the_number_of_steps(tmp_path, capsys):
    folder = tmp_path / "a" / "videos"
    callback = RecordCallback(30, folder=folder, video={"fps": 7, "overlay": False}, verbose=1)
    ppo().learn(64, callback=callback)
    paths = sorted(folder.iterdir())
    assert [path.name for path in paths] == ["steps-000000000.mp4", "steps-000000032.mp4"]
    assert str(paths[0]) in capsys.readouterr().out
    with av.open(str(paths[0])) as container:
        assert len(list(container.decode(video=0))) == 5
        assert container.streams.video[0].average_rate == 7


@pytest.mark.parametrize(
    ("options", "word"),
    [({"every": 0}, "every"), ({"every": 5, "episodes": 0}, "episodes"), ({"every": 5, "keep": True}, "keep")],
)
def test_invalid_arguments_are_refused(options, word):
    with pytest.raises(ParameterError, match=word):
        RecordCallback(**options)


@pytest.mark.parametrize("options", [{"env": 2}, {"what": "render"}, {"what": "sound"}, {"key": "image"}])
def test_what_cannot_be_recorded_is_refused_before_training(options):
    model = ppo()
    with pytest.raises(ParameterError, match=next(iter(options))):
        model.learn(64, callback=RecordCallback(20, **options))
    assert model.num_timesteps == 0


def test_the_error_for_observations_without_images_names_a_working_alternative():
    def learn(envs, callback=None):
        options = {"n_steps": 16, "batch_size": 16, "n_epochs": 1, "policy_kwargs": {"net_arch": [4]}, "device": "cpu"}
        PPO("MlpPolicy", envs, **options).learn(16, callback=callback)

    envs = DummyVecEnv([lambda: gymnasium.make("CartPole-v1")])
    with pytest.raises(ObservationError, match=r"what='render'.*train in a VecRecord with a FramelessRecordBuffer"):
        learn(envs, RecordCallback(20))
    recorded = VecRecord(envs, FramelessRecordBuffer(size=99, dtypes=["uint8", "float64", "bool"]))
    learn(recorded)
    assert (~recorded.recording[:].dones).sum() == 16


def test_missing_video_libraries_are_reported_before_training(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(MissingExtraError, match=r"recording\[video\]"):
        RecordCallback(20, folder=tmp_path / "videos")
    assert list(tmp_path.iterdir()) == []
