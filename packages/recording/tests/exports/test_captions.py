"""Captions of steps."""

import numpy as np
import pytest

from sb3_extra_buffers.recording import FramelessRecordBuffer
from sb3_extra_buffers.recording.exports.drawing import Captions, action_text, reward_text


def test_captions_count_kept_steps_only():
    buffer = FramelessRecordBuffer(size=6)
    for number in range(8):  # 0 and 1 are overwritten; kept are 2 and 3 of the first episode, 4 to 7 of the second
        buffer.add(None, 10**number, number, done=number == 3)
    captions = Captions(buffer)
    found = [captions.of(step) for step in range(6)]
    assert [caption.episode for caption in found] == [0, 0, 1, 1, 1, 1]
    assert [caption.step_in_episode for caption in found] == [0, 1, 0, 1, 2, 3]
    assert [caption.total for caption in found] == [100, 1100, 10_000, 110_000, 1_110_000, 11_110_000]
    assert [caption.progress for caption in found] == [0.5, 1, 0.25, 0.5, 0.75, 1]
    assert [caption.done for caption in found] == [False, True, False, False, False, False]
    assert [caption.action for caption in found] == ["2", "3", "4", "5", "6", "7"]


def test_returns_start_at_zero_in_each_episode():
    buffer = FramelessRecordBuffer(size=4)
    for reward, done in ((np.nan, True), (1.0, False), (2.0, True)):
        buffer.add(None, reward, 0, done=done)
    assert Captions(buffer).of(2).total == 3


@pytest.mark.parametrize(
    ("action", "names", "text"),
    [
        (3, None, "3"),
        (np.int64(1), ["noop", "fire"], "1 fire"),
        (np.array([2]), ["a", "b", "c"], "2 c"),
        (5, ["a"], "5"),
        (-1, ["a"], "-1"),
        (np.array([1, 0]), ["a", "b"], "1 0"),
        (np.array([0.125, -2.0], np.float32), None, "0.12 -2.00"),
        (np.array([[True], [False]]), None, "1 0"),
    ],
)
def test_actions_are_formatted_briefly(action, names, text):
    assert action_text(action, names) == text


@pytest.mark.parametrize(
    ("reward", "text"), [(0.0, "0"), (-0.0, "0"), (1, "+1"), (-0.5, "-0.5"), (1234.56, "+1235"), (float("nan"), "+nan")]
)
def test_rewards_have_a_sign(reward, text):
    assert reward_text(reward) == text
