"""``Feeder``: adds the transitions in the rings of several actors to one replay buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import FileDamagedError, HeapFullError, ObservationError, ParameterError
from sb3_extra_buffers.sharing.files import Ring

#: Between the name of an observation and a key of its Dict space.
_KEY = "."
_LEFT_OUT = "It was left out; the next feed() continues after it."


def transition_record(observation_space: Any, action_space: Any) -> np.dtype[Any]:
    """The dtype of one transition of one environment.

    :param observation_space: a space with a shape and a dtype, or a Dict of such spaces
    :param action_space: a space with a shape and a dtype
    """
    fields: list[tuple[str, Any, tuple[int, ...]]] = []
    for name in ("obs", "next_obs"):
        parts = getattr(observation_space, "spaces", None)
        named = {name: observation_space} if parts is None else {f"{name}{_KEY}{key}": parts[key] for key in parts}
        fields += [(field, space.dtype, space.shape) for field, space in named.items()]
    fields.append(("action", action_space.dtype, action_space.shape))
    fields += [("reward", np.float32, ()), ("done", np.bool_, ()), ("timeout", np.bool_, ())]
    for field, dtype, shape in fields:
        if dtype is None or shape is None or np.dtype(dtype).hasobject:
            raise ParameterError("transition_record", field, f"{dtype} of {shape}", "it must have a shape and a dtype")
    return np.dtype([(field, np.dtype(dtype), tuple(shape)) for field, dtype, shape in fields], align=True)


class Feeder:
    """
    Adds to a replay buffer the transitions that actors have put into their rings. Each actor is one environment of the
    buffer: a step is added when every actor has a transition for it. The transitions of an actor keep their order.

    :param buffer: a replay buffer with one environment for each ring
    :param rings: one for each actor, of :func:`~sb3_extra_buffers.sharing.transition_record`
    """

    def __init__(self, buffer: Any, rings: Sequence[Ring]) -> None:
        if len(rings) != buffer.n_envs:
            allowed = f"the buffer is for {buffer.n_envs} environments, each of which needs one"
            raise ParameterError("Feeder", "rings", len(rings), allowed)
        self._buffer, self._rings = buffer, list(rings)
        # The step that is being delivered: how many records each ring has given when it is done, and the position of
        # the buffer before it, or None if its records leave the rings in any case. Published by one assignment, so
        # that the next call can complete what an interrupt has split.
        self._delivery: tuple[list[int], tuple[int, bool] | None] | None = None

    @property
    def is_ended(self) -> bool:
        """Whether an actor has ended and its ring is empty, so that no further step can be complete."""
        return any(ring.is_ended and not len(ring) for ring in self._rings)

    def feed(self, limit: int | None = None) -> int:
        """
        Add all complete steps. A record leaves its ring when the buffer has it. It also leaves the ring when an error
        has named it, because it is damaged, the buffer refuses it, or it is larger than the heap of the buffer; the
        next call continues after it. If the buffer has no room now, the record stays and the next call tries again.
        After an interrupt, the next call neither loses a record nor adds it twice.

        :param limit: largest number of steps; ``None`` adds all that are complete
        :return: number of steps added
        """
        self._finish_delivery()
        count = min(map(len, self._rings))
        count = count if limit is None else min(count, limit)
        if not count:
            return 0
        found = [self._look(ring, count) for ring in self._rings]
        count = min(len(records) for records in found)  # up to a damaged one
        for number, step in enumerate(np.stack([records[:count] for records in found], axis=1)):
            obs, next_obs = _observations(step, "obs"), _observations(step, "next_obs")
            infos = [{"TimeLimit.truncated": True} if late else {} for late in step["timeout"].tolist()]
            self._delivery = [ring.taken + 1 for ring in self._rings], self._position()
            try:
                self._buffer.add(obs, next_obs, step["action"], step["reward"], step["done"], infos)
            except (HeapFullError, ObservationError) as error:
                self._delivery = None
                if number:
                    return number  # the next call raises the error: this one must return what it has added
                if isinstance(error, HeapFullError) and not error.never_fits:
                    raise
                raise self._leave_out(step, error) from error
            except BaseException:  # such as an interrupt, before or after the step was stored
                self._finish_delivery()
                raise
            self._finish_delivery()
        return count

    def _position(self) -> tuple[int, bool]:
        return self._buffer.pos, self._buffer.full

    def _finish_delivery(self) -> None:
        """Remove the records of the last step from the rings, if the buffer has them. May be repeated at any point."""
        if self._delivery is None:
            return
        taken, before = self._delivery
        # In a buffer of a single step the position never changes. There, adding it again replaces it by itself.
        if before is None or before != self._position():
            for ring, count in zip(self._rings, taken):
                ring.skip(count - ring.taken)
        self._delivery = None

    def _skip(self, rings: Sequence[Ring]) -> None:
        """Remove the oldest record of some rings, all or none of them."""
        self._delivery = [ring.taken + (ring in rings) for ring in self._rings], None
        self._finish_delivery()

    def _look(self, ring: Ring, count: int) -> NDArray[Any]:
        try:
            return ring.look(count)
        except FileDamagedError as error:
            self._skip([ring])
            raise replace(error, hint=_LEFT_OUT) from error

    def _leave_out(self, step: NDArray[Any], error: HeapFullError | ObservationError) -> Exception:
        """Remove a refused step from the rings with invalid records, or from all rings if no record is invalid."""
        blamed = [ring for ring, record in zip(self._rings, step) if _has_nan(record)] or self._rings
        which = " and ".join(f"record {ring.taken} of {ring.path}" for ring in blamed)
        hint = f"{error.hint} {_LEFT_OUT}".lstrip()
        self._skip(blamed)
        if isinstance(error, HeapFullError):
            return replace(error, heap=f"{error.heap}, for {which}", hint=hint)
        return replace(error, argument=f"{error.argument}, in {which},", hint=hint)


def _has_nan(record: Any) -> bool:
    """Whether an action or a reward is NaN: the only content for which a buffer refuses a whole record."""
    return any(record[name].dtype.kind == "f" and np.isnan(record[name]).any() for name in ("action", "reward"))


def _observations(step: NDArray[Any], name: str) -> Any:
    """The observations of a step, by key for a Dict space."""
    names = step.dtype.names or ()
    if name in names:
        return np.ascontiguousarray(step[name])
    fields = [field for field in names if field.startswith(name + _KEY)]
    return {field[len(name + _KEY) :]: np.ascontiguousarray(step[field]) for field in fields}
