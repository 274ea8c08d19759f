"""Pending episodes: all of them come out, whole and in order, and take little memory."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sb3_extra_buffers.training_utils.feeds import PendingEpisodes
from sb3_extra_buffers.training_utils.steps import Step


def observation(env, episode, step, is_dict=False):
    """Says where it comes from; what follows the last step of an episode has a number of its own."""
    place = np.array([env, episode, step], np.int16)
    return {"place": place, "image": np.full((16, 16), 16 * env + step, np.uint8)} if is_dict else place


def rows_of(parts):
    return (
        {key: np.stack([part[key] for part in parts]) for key in parts[0]}
        if isinstance(parts[0], dict)
        else np.stack(parts)
    )


def steps_of(lengths, is_dict=False):
    """Steps of all environments, side by side, until each has played its episodes; which still play, with each step."""
    states = [[0, 0] for _ in lengths]
    while any(episode < len(lengths[env]) for env, (episode, _) in enumerate(states)):
        playing = np.array([episode < len(lengths[env]) for env, (episode, _) in enumerate(states)])
        moments = [(env, *state) for env, state in enumerate(states)]
        over = np.array(
            [play and step + 1 == lengths[env][episode] for play, (env, episode, step) in zip(playing, moments)]
        )
        yield (
            Step(
                rows_of([observation(*moment, is_dict) for moment in moments]),
                rows_of([observation(env, episode, step + 1, is_dict) for env, episode, step in moments]),
                np.array(moments),
                np.array(moments) / 100,
                np.array([100 * env + 10 * episode + step for env, episode, step in moments], np.float32),
                over,
                [{"moment": moment, "terminal_observation": moment} for moment in moments],
            ),
            playing,
        )
        for state, done in zip(states, over):
            state[:] = [state[0] + 1, 0] if done else [state[0], state[1] + 1]


def given_out(lengths, n_columns, is_dict=False):
    """The moments that each column got, every part of every row checked; and what still waits."""
    pending = PendingEpisodes(n_columns, len(lengths))
    columns = [[] for _ in range(n_columns)]
    for step, playing in steps_of(lengths, is_dict):
        pending.put(step, playing)
        for row in pending.steps():
            for column, moment in enumerate(map(tuple, row.actions.tolist())):
                env, episode, number = moment
                for found, expected in (
                    (row.observations, observation(*moment, is_dict)),
                    (row.next_observations, observation(env, episode, number + 1, is_dict)),
                ):
                    for key in expected if is_dict else [Ellipsis]:
                        assert np.array_equal((found[key] if is_dict else found)[column], expected[key])
                assert row.scaled_actions[column].tolist() == [part / 100 for part in moment]
                assert row.rewards[column] == 100 * env + 10 * episode + number
                assert row.rewards.dtype == np.float32
                assert row.dones[column] == (number + 1 == lengths[env][episode])
                assert row.infos[column] == {"moment": moment}
                columns[column].append(moment)
    return columns, pending


@settings(max_examples=60)
@given(st.data(), st.integers(1, 3), st.integers(2, 4), st.booleans())
def test_columns_get_whole_episodes_one_after_the_other(data, n_columns, times, is_dict):
    episodes = st.lists(st.integers(1, 6), min_size=1, max_size=4)
    lengths = [data.draw(episodes) for _ in range(n_columns * times)]
    columns, pending = given_out(lengths, n_columns, is_dict)
    for column in columns:
        for (env, episode, step), following in pairwise(column):
            if step + 1 < lengths[env][episode]:
                assert following == (env, episode, step + 1)
            else:
                assert following[2] == 0
    found = [moment for column in columns for moment in column]
    assert len(set(found)) == len(found)
    assert len(found) + len(pending) == sum(map(sum, lengths))
    # Rows stop when a column can get nothing more: one column gets everything.
    assert n_columns > 1 or not len(pending)


def test_the_episodes_of_an_environment_stay_in_their_order():
    columns, _ = given_out([[3, 1, 4], [2, 2, 2], [5, 1, 1], [1, 6, 2]], 2)
    for env in range(4):
        firsts = [
            (row, episode)
            for column in columns
            for row, (number, episode, step) in enumerate(column)
            if number == env and step == 0
        ]
        assert [episode for _, episode in sorted(firsts)] == sorted(episode for _, episode in firsts)


@pytest.mark.parametrize("is_dict", [False, True])
def test_more_can_wait_than_there_was_room_for_at_first(is_dict):
    # The column follows the first environment for 150 steps, while the others play on.
    columns, pending = given_out([[150], [50, 90], [70, 70], [1] * 140], 1, is_dict)
    assert len(columns[0]) == 150 + 140 * 3
    assert not len(pending)


def test_what_waits_is_stored_once_and_compressed():
    pending = PendingEpisodes(1, 8)
    images = np.zeros((8, 4, 84, 84), np.uint8)
    nothing = np.zeros(8)
    for step in range(40):
        images[:, :, : step + 1] = step
        pending.put(Step(images, images, nothing, nothing, nothing, np.zeros(8, bool), [{}] * 8), np.ones(8, bool))
        list(pending.steps())
    assert len(pending) == 7 * 40
    raw = len(pending) * images[0].nbytes
    assert pending.nbytes < 0.25 * raw
