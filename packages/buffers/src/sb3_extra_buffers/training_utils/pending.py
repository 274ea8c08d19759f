"""``PendingEpisodes``: whole episodes of many environments for a replay buffer with fewer environments."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.arrays import CompressedArray
from sb3_extra_buffers.training_utils.steps import Step

_STEPS_AT_ONCE = 32
_FIRST_CELLS = 128


class _Observations:
    """Compressed observations by cell number. Grows as needed; the cells of dropped observations are used again.

    :param example: observations of the shape to come, with the environments as first axis, or a dictionary of such
    """

    def __init__(self, example: Any) -> None:
        self._is_dict = isinstance(example, dict)
        self._arrays = {key: _cells(_FIRST_CELLS, part) for key, part in self._parts(example).items()}
        self._free = list(range(_FIRST_CELLS))

    @property
    def nbytes(self) -> int:
        """Size of the payloads, including those of dropped observations that were not replaced yet."""
        return sum(array.nbytes_stored for array in self._arrays.values())

    def put(self, observations: Any, envs: NDArray[Any]) -> list[int]:
        """Store the observations of some environments and return their cells."""
        if not len(envs):
            return []
        while len(envs) > len(self._free):
            self._grow()
        cells = [self._free.pop() for _ in envs]
        for key, part in self._parts(observations).items():
            self._arrays[key][cells] = part[envs]
        return cells

    def get(self, cells: list[int]) -> Any:
        """The observations of these cells, in this order."""
        found = {key: array[cells] for key, array in self._arrays.items()}
        return found if self._is_dict else found[None]

    def drop(self, cells: list[int]) -> None:
        """Free these cells."""
        self._free += cells

    def _parts(self, observations: Any) -> dict[Any, Any]:
        return observations if self._is_dict else {None: observations}

    def _grow(self) -> None:
        count = len(next(iter(self._arrays.values())))
        for key, old in self._arrays.items():
            self._arrays[key] = _cells(2 * count, old)
            for start in range(0, count, _FIRST_CELLS):  # in parts, because the whole may be large when decoded
                part = slice(start, start + _FIRST_CELLS)
                self._arrays[key][part] = old[part]
        self._free += range(count, 2 * count)


def _cells(count: int, example: Any) -> CompressedArray:
    return CompressedArray(count, example.dtype, example.shape[1:])


class _Transition(NamedTuple):
    cell: int
    next_cell: int
    action: NDArray[Any]
    scaled_action: NDArray[Any]
    reward: Any
    done: bool
    info: dict[str, Any]


class PendingEpisodes:
    """Takes steps of many environments and returns steps of a few columns, each with whole episodes in order.

    A column follows one environment to the end of its episode, then the environment with the most pending transitions.
    There is a step when every column has a transition. Pending observations are compressed and stored once.

    :param n_columns: number of environments of the buffer
    :param n_envs: number of environments that play
    """

    def __init__(self, n_columns: int, n_envs: int) -> None:
        self._queues: list[deque[_Transition]] = [deque() for _ in range(n_envs)]
        #: The cell of the current observation of each environment, if it was stored as the next one of another.
        self._current: list[int | None] = [None] * n_envs
        self._followed: list[int | None] = [None] * n_columns
        self._observations: _Observations | None = None

    def __len__(self) -> int:
        """Number of pending transitions."""
        return sum(map(len, self._queues))

    @property
    def nbytes(self) -> int:
        """Size of the pending observations."""
        return 0 if self._observations is None else self._observations.nbytes

    def put(self, step: Step, which: NDArray[np.bool_]) -> None:
        """Append transitions.

        :param step: of all environments
        :param which: selects environments; one that is not selected must be at the beginning of an episode
        """
        if self._observations is None:
            self._observations = _Observations(step.observations)
        envs = np.flatnonzero(which)
        starting = np.array([env for env in envs if self._current[env] is None], np.intp)
        for env, first in zip(starting, self._observations.put(step.observations, starting)):
            self._current[env] = first
        for env, next_cell in zip(envs, self._observations.put(step.next_observations, envs)):
            cell, done = self._current[env], bool(step.dones[env])
            assert cell is not None
            # The last observation of an episode is stored already, and may be the largest part of the dictionary.
            info = {key: value for key, value in step.infos[env].items() if key != "terminal_observation"}
            action, scaled = step.actions[env], step.scaled_actions[env]
            self._queues[env].append(_Transition(cell, next_cell, action, scaled, step.rewards[env], done, info))
            self._current[env] = None if done else next_cell

    def steps(self) -> Iterator[Step]:
        """All complete steps, with one transition for each column."""
        while found := self._next_steps():
            yield from self._decode(found)

    def _next_steps(self) -> list[list[_Transition]]:
        """Several steps at once, because decoding many observations takes hardly longer than decoding a few."""
        found: list[list[_Transition]] = []
        while len(found) < _STEPS_AT_ONCE and self._is_complete():
            step = []
            for column, env in enumerate(self._followed):
                assert env is not None
                step.append(self._queues[env].popleft())
                if step[-1].done:
                    self._followed[column] = None
            found.append(step)
        return found

    def _is_complete(self) -> bool:
        for column, env in enumerate(self._followed):
            if env is None:
                free = [env for env in range(len(self._queues)) if env not in self._followed]
                env = max(free, key=lambda env: len(self._queues[env]))
            if not self._queues[env]:
                return False
            self._followed[column] = env
        return True

    def _decode(self, steps: list[list[_Transition]]) -> Iterator[Step]:
        assert self._observations is not None
        transitions = [one for step in steps for one in step]
        # Within an episode, the next observation of a transition is the observation of the one after it.
        cells = list(dict.fromkeys([one.cell for one in transitions] + [one.next_cell for one in transitions]))
        index = {cell: number for number, cell in enumerate(cells)}
        found = self._observations.get(cells)
        self._observations.drop([one.cell for one in transitions] + [one.next_cell for one in transitions if one.done])
        for step in steps:
            _, _, actions, scaled, rewards, dones, infos = zip(*step)
            yield Step(
                _select(found, [index[one.cell] for one in step]),
                _select(found, [index[one.next_cell] for one in step]),
                np.stack(actions),
                np.stack(scaled),
                np.stack(rewards),
                np.array(dones, np.bool_),
                list(infos),
            )


def _select(observations: Any, numbers: list[int]) -> Any:
    if isinstance(observations, dict):
        return {key: part[numbers] for key, part in observations.items()}
    return observations[numbers]
