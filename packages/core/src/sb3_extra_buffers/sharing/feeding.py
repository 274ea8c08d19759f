"""``Feeder``: from the rings of several actors into one buffer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.sharing.records import KEY
from sb3_extra_buffers.sharing.ring import Ring


class Feeder:
    """
    Adds to a replay buffer what actors have put into their rings. Each actor is one environment of the buffer, so
    a row is added when every actor has a transition for it; the transitions of one actor stay in their order.

    :param buffer: a replay buffer for as many environments as there are rings
    :param rings: one for each actor, of :func:`~sb3_extra_buffers.sharing.transition_record`
    """

    def __init__(self, buffer: Any, rings: Sequence[Ring]) -> None:
        if len(rings) != buffer.n_envs:
            allowed = f"the buffer is for {buffer.n_envs} environments, each of which needs one"
            raise ParameterError("Feeder", "rings", len(rings), allowed)
        self._buffer = buffer
        self._rings = list(rings)

    @property
    def is_ended(self) -> bool:
        """Whether there is an actor that will not bring anything any more: no further row can be complete."""
        return any(ring.is_ended and not len(ring) for ring in self._rings)

    def feed(self, limit: int | None = None) -> int:
        """
        Add what is there.

        :param limit: how many rows at the most; ``None`` adds all that are complete
        :return: how many rows were added
        """
        count = min(len(ring) for ring in self._rings)
        count = count if limit is None else min(count, limit)
        if not count:
            return 0
        rows = np.stack([ring.take(count) for ring in self._rings], axis=1)
        obs, following = _observations(rows, "obs"), _observations(rows, "next_obs")
        infos = [[{"TimeLimit.truncated": True} if late else {} for late in row] for row in rows["timeout"].tolist()]
        for number in range(count):
            self._buffer.add(
                _at(obs, number),
                _at(following, number),
                rows["action"][number],
                rows["reward"][number],
                rows["done"][number],
                infos[number],
            )
        return count


def _observations(rows: NDArray[Any], name: str) -> Any:
    """The observations of all rows, by key where there are keys."""
    if name in (rows.dtype.names or ()):
        return np.ascontiguousarray(rows[name])
    keys = [field for field in rows.dtype.names or () if field.startswith(name + KEY)]
    return {field[len(name + KEY) :]: np.ascontiguousarray(rows[field]) for field in keys}


def _at(observations: Any, number: int) -> Any:
    if isinstance(observations, dict):
        return {key: part[number] for key, part in observations.items()}
    return observations[number]
