"""Statistics: returns and lengths of whole episodes, and counts of actions."""

import numpy as np
import pytest

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.recording import FramelessRecordBuffer, RecordBuffer
from sb3_extra_buffers.recording.statistics import action_histogram


def recorded(size, lengths, unfinished=0):
    buffer = FramelessRecordBuffer(size=size)
    for number, length in enumerate(lengths):
        for step in range(length):
            buffer.add(None, 10 ** (number % 5), step % 3, done=step == length - 1)
    for _ in range(unfinished):
        buffer.add(None, 1, 5)
    return buffer


def test_every_whole_episode_counts():
    found = recorded(100, [3, 1, 5], unfinished=2).statistics()
    assert found.returns.tolist() == [3, 10, 500]
    assert found.lengths.tolist() == [3, 1, 5]
    assert (found.kept, found.steps, found.episodes) == (11, 11, 4)


@pytest.mark.parametrize(("size", "whole"), [(9, [3, 1, 5]), (8, [1, 5]), (7, [1, 5]), (6, [1, 5]), (5, [5]), (4, [])])
def test_an_episode_without_its_beginning_does_not_count(size, whole):
    buffer = recorded(size, [3, 1, 5])
    assert buffer.statistics().lengths.tolist() == whole
    assert sum(map(len, buffer.episodes)) == size


def test_returns_are_summed_in_double_precision():
    buffer = FramelessRecordBuffer(size=20_000)
    for number in range(20_000):
        buffer.add(None, 0.1, 0, done=number == 19_999)
    assert buffer.statistics().returns[0] == pytest.approx(20_000 * float(np.float32(0.1)), rel=1e-12)


def test_terminal_frames_can_be_excluded():
    found = recorded(100, [3, 1, 5], unfinished=2).statistics(terminal_frames=True)
    assert found.lengths.tolist() == [2, 0, 4]
    assert found.returns.tolist() == [3, 10, 500]
    assert dict(zip(found.actions.values.tolist(), found.actions.counts.tolist())) == {0: 3, 1: 2, 2: 1, 5: 2}
    assert "0: 38%, 1: 25%, 5: 25%, 2: 12%" in str(found)


def test_integer_actions_are_counted_by_value():
    found = recorded(100, [4, 4], unfinished=1).statistics().actions
    assert found.is_discrete
    assert dict(zip(found.values.tolist(), found.counts.tolist())) == {0: 4, 1: 2, 2: 2, 5: 1}
    pairs = action_histogram(np.array([[1, 2], [0, 1], [1, 2]]), 10)
    assert (pairs.values.tolist(), pairs.counts.tolist()) == ([[0, 1], [1, 2]], [1, 2])


def test_float_actions_have_a_histogram_per_component():
    actions = np.random.default_rng(0).normal(size=(500, 2))
    actions[3, 1] = np.nan
    found = action_histogram(actions, 7)
    assert not found.is_discrete
    assert (found.values.shape, found.counts.shape) == ((2, 8), (2, 7))
    assert found.counts.sum(axis=1).tolist() == [500, 499]
    expected, edges = np.histogram(actions[:, 0], 7)
    assert (found.counts[0].tolist(), found.values[0].tolist()) == (expected.tolist(), edges.tolist())


def test_the_number_of_bins_is_at_least_one():
    for wrong in (0, 2.5, True):
        with pytest.raises(ParameterError, match="bins="):
            recorded(5, [3]).statistics(wrong)


def test_statistics_have_a_text(play, record):
    buffer = record(RecordBuffer((20, 24), 3, 30), play(50))
    lines = str(buffer.statistics()).splitlines()
    assert lines[0] == "30 steps of 50 kept, 6 episodes, 4 of them whole"
    assert [line.split(":")[0].strip() for line in lines[1:]] == ["returns", "lengths", "actions", "frames"]
    assert str(FramelessRecordBuffer().statistics()) == "0 steps of 0 kept, 0 episodes"
