"""Episodes are converted to transitions."""

import numpy as np
import pytest

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.recording import Clip
from sb3_extra_buffers.recording.exports.minari import transitions_of


def episode(done, cut_off=False, count=4):
    """Steps 0 to 3: frame, action and reward show the number of the step."""
    numbers = np.arange(count)
    frames = np.broadcast_to(numbers[:, None, None, None], (count, 2, 2, 1)).astype(np.uint8)
    flags = np.zeros((count, 1), np.bool_)
    flags[-1] = cut_off
    return Clip(frames, numbers.astype(np.float32), numbers * 10, flags, np.array([False] * (count - 1) + [done]))


def shape(found):
    return found.observations[:, 0, 0, 0].tolist(), found.actions.tolist()


@pytest.mark.parametrize("terminal_frames", [True, False])
@pytest.mark.parametrize(("done", "cut_off"), [(False, False), (True, False), (True, True)])
def test_actions_are_between_two_observations(terminal_frames, done, cut_off):
    found = transitions_of(episode(done, cut_off), terminal_frames, 0)
    if done and not cut_off and not terminal_frames:
        assert shape(found) == ([0, 1, 2, 3, 3], [0, 10, 20, 30])
    else:
        assert shape(found) == ([0, 1, 2, 3], [0, 10, 20])
    assert found.rewards.tolist() == [action / 10 for action in found.actions]
    assert found.terminations.tolist() == [False] * (len(found.actions) - 1) + [done and not cut_off]
    assert found.truncations.tolist() == [False] * (len(found.actions) - 1) + [not done or cut_off]
    assert len(found.infos["feature_0"]) == len(found.observations)


def test_without_a_truncation_feature_finished_episodes_are_terminated():
    assert transitions_of(episode(True, True), True, None).terminations[-1]


def test_a_single_frame_has_no_action():
    assert shape(transitions_of(episode(True, count=1), True, None)) == ([0], [])


def test_an_unknown_feature_is_refused():
    with pytest.raises(ParameterError, match="steps have 1 features"):
        transitions_of(episode(True), True, 3)
