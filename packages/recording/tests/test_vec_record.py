"""``VecRecord`` records each environment as if it were alone."""

from functools import partial

import gymnasium
import numpy as np
import pytest
from counting_env import CountingEnv
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecFrameStack, VecTransposeImage

from sb3_extra_buffers.errors import ObservationError, ParameterError
from sb3_extra_buffers.recording import FramelessRecordBuffer, RecordBuffer, RecordEnv, TerminalFrame, VecRecord

ENDS = [(3, 5), (2,), (4,)]


def made(count=3, cls=DummyVecEnv, wrapper=None, **options):
    def make(number):
        env = CountingEnv(ends=ENDS[number], truncated=(False, True), **options)
        return env if wrapper is None else wrapper(env)

    return cls([partial(make, number) for number in range(count)])


def play(venv, steps=12, seed=0):
    random = np.random.default_rng(seed)
    venv.reset()
    for _ in range(steps):
        venv.step(random.integers(0, 4, venv.num_envs))


def alone(number, steps=12, seed=0, what="observation", **options):
    """Record this environment without the others."""
    random = np.random.default_rng(seed)
    env = RecordEnv(CountingEnv(ends=ENDS[number], truncated=(False, True), **options), what=what)
    env.reset()
    for _ in range(steps):
        _, _, terminated, truncated, _ = env.step(random.integers(0, 4, 3)[number])
        if terminated or truncated:
            env.reset()
    return env.recording


def same(one, other):
    first, second = one[:], other[:]
    assert first.frames.shape == second.frames.shape
    for name in ("frames", "rewards", "actions", "features", "dones"):
        assert (getattr(first, name) == getattr(second, name)).all(), name


@pytest.mark.parametrize("envs", [0, 2, [1], [2, 0], "all", (0, 1, 2)])
def test_each_recording_equals_that_of_a_single_environment(envs):
    venv = VecRecord(made(), envs=envs)
    play(venv)
    numbers = [envs] if isinstance(envs, int) else range(3) if envs == "all" else envs
    assert len(venv.recordings) == len(list(numbers))
    for recording, number in zip(venv.recordings, numbers):
        same(recording, alone(number))
    assert venv.recording is venv.recordings[0]


@pytest.mark.parametrize("cls", [DummyVecEnv, SubprocVecEnv])
def test_rendered_episodes_end_with_their_true_last_image(cls):
    wrapper = TerminalFrame if cls is SubprocVecEnv else None
    venv = VecRecord(made(cls=cls, wrapper=wrapper, render_mode="rgb_array"), envs=[1, 0], what="render")
    try:
        play(venv)
        for recording, number in zip(venv.recordings, [1, 0]):
            same(recording, alone(number, what="render", render_mode="rgb_array"))
    finally:
        venv.close()


def test_environments_in_other_processes_need_the_terminal_frame_wrapper():
    venv = made(1, cls=SubprocVecEnv, render_mode="rgb_array")
    try:
        with pytest.raises(ParameterError, match="wrapper_class=TerminalFrame"):
            VecRecord(venv, what="render")
    finally:
        venv.close()


def test_stacked_and_transposed_images_are_recorded():
    venv = VecRecord(VecTransposeImage(VecFrameStack(made(), 4)), envs=1)
    play(venv)
    assert venv.recording.frame_shape == (40, 36, 4)
    same_newest = venv.recording[:].frames[..., -1:]
    assert (same_newest == alone(1)[:].frames).all()


def test_one_key_of_a_dict_observation_can_be_recorded():
    venv = VecRecord(made(kind="dict"), key="image")
    play(venv)
    same(venv.recording, alone(0))


def test_results_of_the_environments_are_unchanged():
    venv, plain = VecRecord(made(), envs="all"), made()
    assert (venv.reset() == plain.reset()).all()
    for _ in range(5):
        ours, theirs = venv.step(np.array([1, 2, 3])), plain.step(np.array([1, 2, 3]))
        for one, other in zip(ours[:3], theirs[:3]):
            assert (one == other).all()
        assert [set(info) for info in ours[3]] == [set(info) for info in theirs[3]]


def test_recordings_can_be_given():
    mine = [RecordBuffer((40, 36), 1, 50), RecordBuffer((40, 36), 1, 3, [np.uint8, np.float32, np.int16])]
    venv = VecRecord(made(), mine[:1], envs=2)
    play(venv)
    assert (mine[0][:].frames == alone(2)[:].frames).all()
    healthy = VecRecord(made(), mine[1], features=lambda info: [info["health"]])
    play(healthy, 3)
    assert mine[1][:].features[:, 0].tolist() == [99, 98, 97]  # the last three steps of the first episode


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"envs": 3}, "environments 0 to 2"),
        ({"envs": [0, 0]}, "envs"),
        ({"envs": []}, "envs"),
        ({"envs": "all", "recording": RecordBuffer((40, 36), 1, 5)}, "3 environments are recorded"),
        ({"what": "sound"}, "'observation' or 'render'"),
        ({"what": "render"}, "render_mode='rgb_array'"),
    ],
)
def test_what_cannot_be_recorded_is_refused(options, word):
    with pytest.raises(ParameterError, match=word):
        VecRecord(made(), **options)


def test_the_error_for_observations_without_images_names_a_working_alternative():
    vectors = DummyVecEnv([lambda: gymnasium.make("CartPole-v1")])
    with pytest.raises(ObservationError, match=r"what='render'.*pass a FramelessRecordBuffer for each"):
        VecRecord(vectors).reset()
    venv = VecRecord(vectors, FramelessRecordBuffer(size=9))
    venv.reset()
    venv.step([1])
    assert venv.recording[:].actions.tolist() == [1]
