"""The actions of a recording."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import ObservationError, ParameterError
from sb3_extra_buffers.memory import untouched
from sb3_extra_buffers.recording.fitting import as_dtype, exactly, fitting

#: Integers of eight bytes are smaller.
_LIMIT = 1 << 63


class Actions:
    """An action for each step. The first one says what shape and dtype they have, unless the user does.

    What the first one decides is kept exactly: integers as ``int64``, floats as what they are, and a later one that
    does not fit is an error. To a dtype that the user asked for, floats are rounded as in an assignment.

    :param owner: the class of the recording, for errors
    :param size: how many steps are kept
    :param dtype: of the actions; ``None`` leaves it to the first one
    :param shape: of one action; ``None`` leaves it to the first one
    """

    _HINT = "Say what all of them are when making the recording: action_dtype= and action_shape=."

    def __init__(self, owner: str, size: int, dtype: Any, shape: int | tuple[int, ...] | None) -> None:
        self._owner = owner
        self._dtype = None if dtype is None else as_dtype(owner, dtype, "action_dtype")
        self._shape = None if shape is None else _as_shape(owner, shape)
        self._is_decided = False
        #: Whether they are single integers: what discrete actions are, so these go the shortest way.
        self._are_plain = False
        kind = np.dtype(np.int64) if self._dtype is None else self._dtype
        self.array: NDArray[Any] = untouched((size, *(self._shape or ())), kind)

    @property
    def asked(self) -> tuple[np.dtype[Any] | None, tuple[int, ...] | None]:
        """The dtype and the shape that the user asked for."""
        return self._dtype, self._shape

    def fit(self, value: Any) -> Any:
        """The action to store, or an error. Nothing changes yet."""
        if self._are_plain and (type(value) is np.int64 or (type(value) is int and -_LIMIT <= value < _LIMIT)):
            return value
        dtype, shape = self._dtype, self._shape
        if self._is_decided:
            dtype, shape = self.array.dtype, self.array.shape[1:]
        elif dtype is None:
            dtype = _dtype_of(self._owner, value)
        convert = exactly if self._dtype is None else fitting
        found = convert(self._owner, "action", value, dtype, self._HINT)
        if shape is not None and found.shape != shape:
            if found.size != 1 or shape not in ((), (1,)):
                raise ObservationError(self._owner, "action", f"of shape {found.shape}", f"shape {shape}", self._HINT)
            found = found.reshape(shape)
        return found

    def write(self, place: int, action: Any) -> None:
        """Store an action that fits."""
        if not self._is_decided:
            self._decide(action.shape, action.dtype)
        self.array[place] = action

    def take(self, places: slice, actions: NDArray[Any]) -> None:
        """Store several actions of the same shape and dtype, or raise."""
        shape = actions.shape[1:]
        if self._shape not in (None, shape):
            raise ObservationError(self._owner, "actions", f"of shape {shape}", f"shape {self._shape}", self._HINT)
        dtype = actions.dtype if self._dtype is None else self._dtype
        fitted = fitting(self._owner, "actions", actions, dtype, self._HINT)
        if not self._is_decided:
            self._decide(shape, dtype)
        self.array[places] = fitted

    def forget(self) -> None:
        """Let the next action decide again."""
        self._is_decided = self._are_plain = False

    def _decide(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        if self.array.shape[1:] != shape or self.array.dtype != dtype:
            self.array = untouched((len(self.array), *shape), dtype)
        self._is_decided = True
        self._are_plain = self.array.ndim == 1 and dtype == np.int64


def _dtype_of(owner: str, action: Any) -> np.dtype[Any]:
    try:
        dtype = np.asarray(action).dtype
    except (TypeError, ValueError) as error:
        raise ObservationError(owner, "action", f"{type(action).__name__} ({error})", "numbers") from None
    if dtype.kind not in "biuf":
        raise ObservationError(owner, "action", f"an array of {dtype}", "numbers")
    # Those to come may be larger; eight bytes are little beside a frame.
    return np.dtype(np.int64) if dtype.kind in "iu" and dtype != np.uint64 else dtype


def _as_shape(owner: str, shape: Any) -> tuple[int, ...]:
    axes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if any(isinstance(axis, bool) or not isinstance(axis, (int, np.integer)) or axis < 1 for axis in axes):
        raise ParameterError(
            owner, "action_shape", shape, "it must be an integer or a tuple of integers, at least 1 each"
        )
    return tuple(int(axis) for axis in axes)
