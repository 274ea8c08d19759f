"""What a replay buffer holds, read back and held against the script."""

import numpy as np
import pytest
from scripted_play import action, is_timeout, length, picture, reward


def _places(array, row, column):
    """The moment that an observation says it is of; its image must agree."""
    if not isinstance(array, dict):
        return tuple(np.asarray(array[row, column]).tolist())
    moment = tuple(np.asarray(array["place"][row, column]).tolist())
    assert np.array_equal(array["image"][row, column], picture(*moment))
    return moment


@pytest.fixture
def stored():
    """The moments in a buffer, column by column, after every transition was checked in every part."""

    def stored(buffer):
        assert not buffer.full, "the oldest are gone"
        columns = [
            [_places(buffer.observations, row, env) for row in range(buffer.pos)] for env in range(buffer.n_envs)
        ]
        for column, moments in enumerate(columns):
            for row, (env, episode, step) in enumerate(moments):
                over = step + 1 == length(env, episode)
                assert buffer.actions[row, column].item() == action(env, episode, step)
                assert buffer.rewards[row, column] == reward(env, episode, step)
                assert buffer.dones[row, column] == over
                if buffer.handle_timeout_termination:
                    assert buffer.timeouts[row, column] == (over and is_timeout(env, episode))
                if buffer.optimize_memory_usage:
                    following = _places(buffer.observations, row + 1, column)
                    if not over:
                        assert following == (env, episode, step + 1)
                else:
                    following = _places(buffer.next_observations, row, column)
                    assert following == (env, episode, step + 1)
                # Neighbours in a column are neighbours in an episode.
                if row + 1 < len(moments):
                    assert moments[row + 1][2] == 0 if over else moments[row + 1] == (env, episode, step + 1)
                if row == 0:
                    assert step == 0
        return columns

    return stored
