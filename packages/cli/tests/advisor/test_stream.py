"""A stream gives buffers what an algorithm gives them."""

from itertools import pairwise

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer

from sb3_extra_buffers.advisor import Stream
from sb3_extra_buffers.advisor.stream import feed
from sb3_extra_buffers.compressed import CompressedDictReplayBuffer, CompressedReplayBuffer
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.training_utils.steps import Step


def test_a_plain_buffer_that_was_fed_holds_the_stream(vectors):
    buffer = vectors.plain_buffer(vectors.transitions)
    feed(buffer, vectors.steps)
    assert type(buffer) is ReplayBuffer
    assert buffer.full
    assert buffer.n_envs == 2
    for row, step in enumerate(vectors.steps):
        assert np.array_equal(buffer.observations[row], step.observations)
        assert np.array_equal(buffer.next_observations[row], step.next_observations)
        assert np.array_equal(buffer.rewards[row], step.rewards)


def test_rows_are_observations_from_all_over_the_stream(wandering):
    rows = wandering.rows("", 10)
    every = len(wandering.steps) // 10
    expected = [step.observations[0].tobytes() for step in wandering.steps[::every][:10]]
    assert [row.tobytes() for row in rows] == expected


def test_a_space_with_keys_gets_buffers_with_keys():
    space = spaces.Dict({"image": spaces.Box(0, 255, (8, 8), np.uint8), "speed": spaces.Box(-1, 1, (2,), np.float32)})
    space.seed(0)
    observations = [{key: value[np.newaxis] for key, value in space.sample().items()} for _ in range(70)]
    action, reward, done = np.zeros((1, 1), np.int64), np.zeros(1, np.float32), np.zeros(1, np.bool_)
    pairs = pairwise(observations)
    steps = [Step(before, after, action, action, reward, done, [{}]) for before, after in pairs]
    stream = Stream("keys", space, spaces.Discrete(2), 1, steps)
    assert type(stream.plain_buffer(10)) is DictReplayBuffer
    assert type(stream.compressed_buffer(10, {})) is CompressedDictReplayBuffer
    assert stream.rows("image", 3)[0].tobytes() == observations[0]["image"].tobytes()


def test_a_space_without_keys_gets_a_buffer_without(wandering):
    assert type(wandering.compressed_buffer(10, {})) is CompressedReplayBuffer


def test_what_is_too_short_to_judge_by_is_refused(vectors):
    with pytest.raises(ParameterError, match="steps=63 is not allowed; it takes 64 to judge by"):
        Stream("short", vectors.observation_space, vectors.action_space, 2, vectors.steps[:63])
