"""``Feeder``: from the rings of several actors into one buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import FileDamagedError, HeapFullError, ObservationError, ParameterError
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
        Add what is there. A record leaves its ring when it is in the buffer; or when an error has named it, because it
        is damaged, the buffer refuses it, or it is larger than the buffer's heap: then the next call goes on behind it.
        If there is only no room for it now, it stays, and the next call tries again.

        :param limit: how many rows at the most; ``None`` adds all that are complete
        :return: how many rows were added
        """
        count = min(len(ring) for ring in self._rings)
        count = count if limit is None else min(count, limit)
        if not count:
            return 0
        found = [self._looked(ring, count) for ring in self._rings]
        count = min(len(records) for records in found)  # up to one that is damaged
        rows = np.stack([records[:count] for records in found], axis=1)
        obs, following = _observations(rows, "obs"), _observations(rows, "next_obs")
        infos = [[{"TimeLimit.truncated": True} if late else {} for late in row] for row in rows["timeout"].tolist()]
        for number in range(count):
            try:
                self._buffer.add(
                    _at(obs, number),
                    _at(following, number),
                    rows["action"][number],
                    rows["reward"][number],
                    rows["done"][number],
                    infos[number],
                )
            except (HeapFullError, ObservationError) as error:
                if number:
                    return number  # how many were added must be told, so the next call tells of this one
                if isinstance(error, HeapFullError) and not error.never_fits:
                    raise
                raise self._left_out(rows[number], error) from error
            for ring in self._rings:
                ring.skip()
        return count

    @staticmethod
    def _looked(ring: Ring, count: int) -> NDArray[Any]:
        try:
            return ring.look(count)
        except FileDamagedError as error:
            ring.skip()
            raise replace(error, hint="It was left out; the next feed() goes on behind it.") from error

    def _left_out(self, row: NDArray[Any], error: HeapFullError | ObservationError) -> HeapFullError | ObservationError:
        """Take a row out that the buffer refuses: of the rings that are to blame, or of all if none can be told."""
        blamed = [ring for ring, record in zip(self._rings, row) if _has_nan(record)] or self._rings
        which = " and ".join(f"record {ring.taken} of {ring.path}" for ring in blamed)
        for ring in blamed:
            ring.skip()
        hint = f"{error.hint} It was left out; the next feed() goes on behind it.".lstrip()
        if isinstance(error, HeapFullError):
            return replace(error, heap=f"{error.heap}, for {which}", hint=hint)
        return replace(error, argument=f"{error.argument}, in {which},", hint=hint)


def _has_nan(record: Any) -> bool:
    """Whether an actor's action or reward is no number: the one thing that a buffer refuses of a whole record."""
    return any(record[name].dtype.kind == "f" and np.isnan(record[name]).any() for name in ("action", "reward"))


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
