"""Fixtures: steps of a moving scene with noise, rewards, actions, features and ends of episodes."""

from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import pytest

#: Libraries that tests need; the tests are ignored without them. The session "tests" has all of them.
NEEDS = {
    "exports/test_drawing.py": ["PIL"],
    "exports/test_contact_sheet.py": ["PIL"],
    "exports/test_hugging_face.py": ["datasets", "PIL"],
    "exports/test_minari.py": ["minari", "h5py", "PIL", "pyarrow"],
    "exports/test_parquet.py": ["PIL", "pyarrow"],
    "exports/test_video.py": ["av", "PIL"],
    "exports/test_extras.py": ["av", "PIL", "pyarrow", "datasets", "minari"],
    "test_record_env.py": ["gymnasium"],
    "test_vec_record.py": ["stable_baselines3"],
    "test_callback.py": ["stable_baselines3", "av"],
}
collect_ignore = [name for name, libraries in NEEDS.items() if any(find_spec(library) is None for library in libraries)]


class Played(NamedTuple):
    frame: np.ndarray
    reward: float
    action: Any
    features: Any
    done: bool


@pytest.fixture
def play():
    """Create steps; equal seeds give equal steps."""

    def play(count, shape=(20, 24, 3), seed=0, action=None, features=None, episode=7):
        random = np.random.default_rng(seed)
        frame = random.integers(0, 4, shape).astype(np.uint8) * 60
        steps = []
        for number in range(count):
            frame = np.roll(frame, 1, axis=1) if number % 5 == 0 else frame.copy()
            frame[random.integers(shape[0]), random.integers(shape[1])] = random.integers(256)
            taken = int(random.integers(6)) if action is None else action(random)
            extras = None if features is None else features(random)
            steps.append(Played(frame, float(random.normal()), taken, extras, number % episode == episode - 1))
        return steps

    return play


@pytest.fixture
def record():
    """Record steps."""

    def record(buffer, steps):
        for frame, reward, action, features, done in steps:
            buffer.add(frame, reward, action, features, done=done)
        return buffer

    return record


@pytest.fixture
def expect():
    """Assert that a recording holds the newest of the given steps exactly."""

    def expect(recording, steps):
        kept = steps[max(0, len(steps) - recording.max_size) :]
        clip = recording[:]
        assert len(recording) == len(clip) == len(kept)
        if recording.frame_shape is None:
            assert clip.frames is None
        elif kept:
            assert clip.frames.tobytes() == np.array([step.frame for step in kept]).tobytes()
        assert clip.rewards.tolist() == np.array([step.reward for step in kept], clip.rewards.dtype).tolist()
        assert clip.actions.tolist() == [np.asarray(step.action).tolist() for step in kept]
        assert clip.dones.tolist() == [step.done for step in kept]
        if clip.features is None:
            assert all(step.features is None for step in kept)
        else:
            assert [list(row) for row in clip.features.tolist()] == [list(step.features) for step in kept]

    return expect
