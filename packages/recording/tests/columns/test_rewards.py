"""Rewards are numbers, rounded to their dtype."""

import math

import numpy as np
import pytest

from sb3_extra_buffers.errors import ObservationError
from sb3_extra_buffers.recording import FramelessRecordBuffer


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_floats_are_rounded_as_in_an_assignment(dtype):
    rewards = [0.1, 1, np.float32(0.3), np.array([0.7]), np.array(2.5), True, -0.0, math.inf, -math.inf, 1e4 / 3]
    buffer = FramelessRecordBuffer(size=20, dtypes=["uint8", dtype])
    for reward in rewards:
        buffer.add(None, reward, 0)
    expected = np.array([float(np.squeeze(reward)) for reward in rewards], dtype)
    assert buffer[:].rewards.tobytes() == expected.tobytes()


def test_a_reward_that_is_no_number_stays_one():
    buffer = FramelessRecordBuffer(size=2)
    buffer.add(None, math.nan, 0)
    assert math.isnan(buffer[0].reward)


def test_integers_stay_integers_or_are_refused():
    buffer = FramelessRecordBuffer(size=2, dtypes=["uint8", "int8"])
    buffer.add(None, 3.0, 0)
    for wrong in (0.5, 128):
        with pytest.raises(ObservationError, match="reward"):
            buffer.add(None, wrong, 0)
    assert buffer[:].rewards.tolist() == [3]


@pytest.mark.parametrize("wrong", [1e39, -1e39, 10**400, "1", [], [1, 2], None], ids=str)
def test_what_is_no_reward_is_refused(wrong):
    buffer = FramelessRecordBuffer(size=2)
    with pytest.raises(ObservationError, match="reward"):
        buffer.add(None, wrong, 0)
    assert len(buffer) == 0
