"""``RecordEnv`` records frames, actions and rewards up to the last frame of every episode."""

import gymnasium
import numpy as np
import pytest
from counting_env import CountingEnv

from sb3_extra_buffers.errors import BufferStateError, ObservationError, ParameterError
from sb3_extra_buffers.recording import FramelessRecordBuffer, RecordBuffer, RecordEnv


def play(env, actions):
    env.reset()
    for action in actions:
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()


def shades(recording):
    frames = recording[:].frames
    assert (frames == frames[:, :1, :1, :1]).all()
    return frames[:, 0, 0, 0].tolist()


@pytest.mark.parametrize("shared", [False, True])
def test_every_frame_is_recorded_with_its_action(shared):
    env = RecordEnv(CountingEnv(shared=shared))
    play(env, [1, 2, 3, 0, 1])
    clip = env.recording[:]
    assert shades(env.recording) == [0, 1, 2, 3, 16, 17]
    assert clip.actions.tolist() == [1, 2, 3, 0, 0, 1]
    assert clip.rewards.tolist() == [2, 4, 6, 0, 1, 3]
    assert clip.dones.tolist() == [False, False, False, True, False, False]
    assert env.recording.episodes == [range(4), range(4, 6)]


def test_results_of_the_environment_are_unchanged():
    env, plain = RecordEnv(CountingEnv()), CountingEnv()
    for one, other in ((env.reset(seed=3), plain.reset(seed=3)), (env.step(2), plain.step(2))):
        assert (one[0] == other[0]).all()
        assert one[1:] == other[1:]


def test_rendered_images_can_be_recorded():
    env = RecordEnv(CountingEnv(render_mode="rgb_array"), what="render")
    play(env, [0, 0, 0, 0])
    assert env.recording.frame_shape == (50, 60, 3)
    assert shades(env.recording) == [100, 101, 102, 103, 116]


@pytest.mark.parametrize(
    ("shape", "form"), [((40, 36), (40, 36, 1)), ((3, 40, 36), (40, 36, 3)), ((40, 36, 4), (40, 36, 4))]
)
def test_the_order_of_channels_is_found_from_the_shape(shape, form):
    env = RecordEnv(CountingEnv(shape=shape))
    play(env, [0, 0])
    assert env.recording.frame_shape == form
    assert shades(env.recording) == [0, 1]


def test_one_key_of_a_dict_observation_can_be_recorded():
    env = RecordEnv(CountingEnv(kind="dict"), key="image")
    play(env, [0, 0])
    assert shades(env.recording) == [0, 1]


def test_the_feature_marks_episodes_truncated_by_time_or_reset():
    env = RecordEnv(CountingEnv(ends=(2, 2), truncated=(False, True)))
    play(env, [0, 0, 0, 0, 0])  # a terminated episode, a truncated one, and one that has begun
    env.reset()  # truncates the episode
    env.reset()  # an episode without an action
    env.step(3)
    clip = env.recording[:]
    assert clip.dones.tolist() == [False, False, True] * 2 + [False, True, False]
    assert clip.features[:, 0].tolist() == [False] * 5 + [True, False, True, False]
    assert shades(env.recording) == [0, 1, 2, 16, 17, 18, 32, 33, 64]


def test_vector_actions_are_recorded():
    env = RecordEnv(CountingEnv(vector=True))
    play(env, [np.array([0.5, -1], np.float32)] * 3)
    assert env.recording[:].actions.tolist() == [[0.5, -1]] * 3 + [[0, 0]]


def test_a_given_recording_gets_features_from_info():
    recording = RecordBuffer((40, 36), 1, 100, [np.uint8, np.float32, np.int16])
    env = RecordEnv(CountingEnv(), recording, features=lambda info: [info["health"]])
    play(env, [0, 0, 0])
    assert env.recording is recording
    assert recording[:].features[:, 0].tolist() == [100, 99, 98, 97]


def test_a_frameless_recording_accepts_any_observation():
    recording = FramelessRecordBuffer(size=10)
    env = RecordEnv(gymnasium.make("CartPole-v1"), recording)
    play(env, [0] * 5)
    assert len(recording) == 5
    assert recording[:].rewards.tolist() == [1] * 5


def test_options_are_passed_to_the_created_recording():
    env = RecordEnv(CountingEnv(), size=4, compression_method="none")
    play(env, [1] * 9)
    assert len(env.recording) == 4
    assert env.recording.memory.codec is None or "none" in str(env.recording.memory.codec)


@pytest.mark.parametrize(
    ("env", "options", "error", "word"),
    [
        (CountingEnv(), {"what": "sound"}, ParameterError, "'observation' or 'render'"),
        (CountingEnv(), {"what": "render"}, ParameterError, "render_mode='rgb_array'"),
        (CountingEnv(kind="dict"), {}, ParameterError, "'image', 'speed'"),
        (CountingEnv(kind="dict"), {"key": "sound"}, ParameterError, "'image', 'speed'"),
        (CountingEnv(), {"key": "image"}, ParameterError, "not dictionaries"),
        (gymnasium.make("CartPole-v1"), {}, ObservationError, "what='render'.*pass a FramelessRecordBuffer"),
    ],
)
def test_what_cannot_be_recorded_is_refused_before_the_first_step(env, options, error, word):
    with pytest.raises(error, match=word):
        RecordEnv(env, **options).reset()


def test_before_the_first_frame_there_is_no_recording():
    env = RecordEnv(CountingEnv())
    with pytest.raises(BufferStateError, match="Reset the environment first"):
        _ = env.recording
    with pytest.raises(BufferStateError, match="no episode has begun"):
        env.step(0)


def test_a_failed_step_does_not_change_the_recording():
    env = RecordEnv(CountingEnv(), RecordBuffer((40, 36), 1, 10))
    env.reset()
    env.step(1)
    env.env.shape = (41, 36, 1)
    env.step(1)
    with pytest.raises(ObservationError, match="shape"):
        env.step(1)
    assert shades(env.recording) == [0, 1]
