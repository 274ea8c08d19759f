"""Every action stands between two observations."""

import numpy as np
import pytest

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.recording import Clip
from sb3_extra_buffers.recording.exports.transitions import cut


def episode(done, cut_off=False, count=4):
    """Steps 0 to 3: the frame, the action and the reward of each say its number."""
    numbers = np.arange(count)
    frames = np.broadcast_to(numbers[:, None, None, None], (count, 2, 2, 1)).astype(np.uint8)
    flags = np.zeros((count, 1), np.bool_)
    flags[-1] = cut_off
    return Clip(frames, numbers.astype(np.float32), numbers * 10, flags, np.array([False] * (count - 1) + [done]))


def shape(found):
    return found.observations[:, 0, 0, 0].tolist(), found.actions.tolist()


@pytest.mark.parametrize("terminal_frames", [True, False])
@pytest.mark.parametrize(("done", "cut_off"), [(False, False), (True, False), (True, True)])
def test_steps_and_ends(terminal_frames, done, cut_off):
    found = cut(episode(done, cut_off), terminal_frames, 0, "to_minari")
    if done and not cut_off and not terminal_frames:
        assert shape(found) == ([0, 1, 2, 3, 3], [0, 10, 20, 30])
    else:
        assert shape(found) == ([0, 1, 2, 3], [0, 10, 20])
    assert found.rewards.tolist() == [action / 10 for action in found.actions]
    assert found.terminations.tolist() == [False] * (len(found.actions) - 1) + [done and not cut_off]
    assert found.truncations.tolist() == [False] * (len(found.actions) - 1) + [not done or cut_off]
    assert len(found.infos["feature_0"]) == len(found.observations)


def test_if_nobody_says_what_was_cut_off_whatever_is_done_came_to_its_end():
    assert cut(episode(True, True), True, None, "to_minari").terminations[-1]


def test_a_single_frame_has_no_action():
    assert shape(cut(episode(True, count=1), True, None, "to_minari")) == ([0], [])


def test_a_feature_that_is_not_there_is_refused():
    with pytest.raises(ParameterError, match="steps have 1 features"):
        cut(episode(True), True, 3, "to_minari")
