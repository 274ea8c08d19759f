"""Many environments, few columns: every column of a buffer gets whole episodes, one after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.training_utils.cells import ObservationCells
from sb3_extra_buffers.training_utils.steps import Step

_ROWS_AT_ONCE = 32


class _Transition(NamedTuple):
    observation: int
    next_observation: int
    action: NDArray[Any]
    scaled_action: NDArray[Any]
    reward: Any
    done: bool
    info: dict[str, Any]


class WaitingEpisodes:
    """Takes steps of all environments, and gives rows in which neighbours in a column are neighbours in an episode.

    A column follows one environment to the end of its episode, then the one that is most behind. There is a row as soon
    as every column has a transition. The rest waits, compressed, each observation once.

    :param n_columns: how many environments the buffer is for
    :param n_envs: how many there are
    """

    def __init__(self, n_columns: int, n_envs: int) -> None:
        self._queues: list[deque[_Transition]] = [deque() for _ in range(n_envs)]
        #: The number of the observation that each environment shows, if it was stored as the successor of another.
        self._current: list[int | None] = [None] * n_envs
        self._followed: list[int | None] = [None] * n_columns
        self._cells: ObservationCells | None = None

    def __len__(self) -> int:
        """How many transitions wait."""
        return sum(map(len, self._queues))

    @property
    def nbytes(self) -> int:
        """What their observations take."""
        return 0 if self._cells is None else self._cells.nbytes

    def put(self, step: Step, which: NDArray[np.bool_]) -> None:
        """
        Let transitions wait.

        :param step: of all environments
        :param which: the environments that are meant; one that is left out must be at the beginning of an episode
        """
        if self._cells is None:
            self._cells = ObservationCells(step.observations)
        envs = np.flatnonzero(which)
        beginners = np.array([env for env in envs if self._current[env] is None], np.intp)
        for env, number in zip(beginners, self._cells.put(step.observations, beginners)):
            self._current[env] = number
        for env, successor in zip(envs, self._cells.put(step.next_observations, envs)):
            current, done = self._current[env], bool(step.dones[env])
            assert current is not None
            # The last observation of an episode is stored already, and may be the largest part of the dictionary.
            info = {key: value for key, value in step.infos[env].items() if key != "terminal_observation"}
            self._queues[env].append(
                _Transition(
                    current, successor, step.actions[env], step.scaled_actions[env], step.rewards[env], done, info
                )
            )
            self._current[env] = None if done else successor

    def rows(self) -> Iterator[Step]:
        """Everything that can be given now, a transition for each column at a time."""
        while rows := self._next_rows():
            yield from self._steps(rows)

    def _next_rows(self) -> list[list[_Transition]]:
        """Some rows at once, because decoding many observations takes hardly longer than decoding a few."""
        rows: list[list[_Transition]] = []
        while len(rows) < _ROWS_AT_ONCE and self._has_row():
            row = []
            for column, env in enumerate(self._followed):
                assert env is not None
                row.append(self._queues[env].popleft())
                if row[-1].done:
                    self._followed[column] = None
            rows.append(row)
        return rows

    def _has_row(self) -> bool:
        for column, env in enumerate(self._followed):
            if env is None:
                free = [env for env in range(len(self._queues)) if env not in self._followed]
                env = max(free, key=lambda env: len(self._queues[env]))
            if not self._queues[env]:
                return False
            self._followed[column] = env
        return True

    def _steps(self, rows: list[list[_Transition]]) -> Iterator[Step]:
        assert self._cells is not None
        transitions = [transition for row in rows for transition in row]
        before = [transition.observation for transition in transitions]
        after = [transition.next_observation for transition in transitions]
        # Within an episode, what comes after is what is before the transition that comes next.
        numbers = list(dict.fromkeys(before + after))
        places = {number: place for place, number in enumerate(numbers)}
        found = self._cells.get(numbers)
        self._cells.drop(before + [transition.next_observation for transition in transitions if transition.done])
        for row in rows:
            yield Step(
                _rows(found, [places[transition.observation] for transition in row]),
                _rows(found, [places[transition.next_observation] for transition in row]),
                np.stack([transition.action for transition in row]),
                np.stack([transition.scaled_action for transition in row]),
                np.stack([transition.reward for transition in row]),
                np.array([transition.done for transition in row], np.bool_),
                [transition.info for transition in row],
            )


def _rows(observations: Any, places: list[int]) -> Any:
    if isinstance(observations, dict):
        return {key: rows[places] for key, rows in observations.items()}
    return observations[places]
