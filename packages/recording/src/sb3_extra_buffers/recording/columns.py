"""Rewards, actions and features of a recording: one array each, one row per step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import ObservationError, ParameterError
from sb3_extra_buffers.memory import untouched
from sb3_extra_buffers.recording.casting import as_dtype, cast, cast_exactly, is_integer

#: Limit of ``int64``.
_INT64_LIMIT = 1 << 63
_ACTION_HINT = "Set action_dtype= and action_shape= when creating the recording."
_FEATURE_HINT = "dtypes=[frame, reward, *features] defines the features."


class Rewards:
    """One number per step, rounded to the dtype of the recording as an assignment does.

    :param owner: class of the recording, for errors
    :param size: number of steps kept
    :param dtype: dtype of the rewards
    """

    def __init__(self, owner: str, size: int, dtype: np.dtype[Any]) -> None:
        self._owner = owner
        self.array: NDArray[Any] = untouched(size, dtype)
        #: Python floats within this limit need no conversion; -1 if the dtype is not a float.
        self._limit = float(np.finfo(dtype).max) if dtype.kind == "f" and dtype.itemsize <= 8 else -1.0

    def convert(self, value: Any) -> Any:
        """Return the value to store, or raise."""
        if type(value) is float and -self._limit <= value <= self._limit:
            return value
        found = cast(self._owner, "reward", value, self.array.dtype)
        if found.size != 1:
            raise ObservationError(self._owner, "reward", f"of shape {found.shape}", "one number")
        return found.reshape(())


class Actions:
    """One action per step. The first action sets shape and dtype, unless the user gave them.

    If the first action sets the dtype, actions are kept exactly: integers as ``int64``, floats in their own dtype, and
    a later action that does not fit is an error. If the user gave a dtype, floats are rounded as in an assignment.

    :param owner: class of the recording, for errors
    :param size: number of steps kept
    :param dtype: dtype of the actions; ``None``: set by the first action
    :param shape: shape of one action; ``None``: set by the first action
    """

    def __init__(self, owner: str, size: int, dtype: Any, shape: int | tuple[int, ...] | None) -> None:
        self._owner = owner
        #: The dtype and shape given by the user.
        self.dtype = None if dtype is None else as_dtype(owner, dtype, "action_dtype")
        self.shape = None if shape is None else _as_shape(owner, shape)
        self.reset()
        kind = np.dtype(np.int64) if self.dtype is None else self.dtype
        self.array: NDArray[Any] = untouched((size, *(self.shape or ())), kind)

    def reset(self) -> None:
        """Let the next action set shape and dtype again."""
        #: Whether an action was stored, so that shape and dtype are fixed.
        self.is_decided = False
        #: Whether actions are single ``int64``: the usual discrete actions take a fast path.
        self._is_discrete = False

    def restore(self, array: NDArray[Any], is_decided: bool) -> None:
        """Take over the array of other actions."""
        self.array = array
        if is_decided:
            self._decide(array.shape[1:], array.dtype)

    def convert(self, value: Any) -> Any:
        """Return the action to store, or raise. Changes nothing."""
        if self._is_discrete and (
            type(value) is np.int64 or (type(value) is int and -_INT64_LIMIT <= value < _INT64_LIMIT)
        ):
            return value
        dtype, shape = self.dtype, self.shape
        if self.is_decided:
            dtype, shape = self.array.dtype, self.array.shape[1:]
        elif dtype is None:
            dtype = _action_dtype(self._owner, value)
        convert = cast_exactly if self.dtype is None else cast
        found = convert(self._owner, "action", value, dtype, _ACTION_HINT)
        if shape is not None and found.shape != shape:
            if found.size != 1 or shape not in ((), (1,)):
                raise ObservationError(self._owner, "action", f"of shape {found.shape}", f"shape {shape}", _ACTION_HINT)
            found = found.reshape(shape)
        return found

    def write(self, index: int, action: Any) -> None:
        """Store a converted action."""
        if not self.is_decided:
            self._decide(action.shape, action.dtype)
        self.array[index] = action

    def write_all(self, indices: slice, actions: NDArray[Any]) -> None:
        """Convert and store several actions of one shape and dtype, or raise."""
        shape = actions.shape[1:]
        if self.shape not in (None, shape):
            raise ObservationError(self._owner, "actions", f"of shape {shape}", f"shape {self.shape}", _ACTION_HINT)
        dtype = actions.dtype if self.dtype is None else self.dtype
        converted = cast(self._owner, "actions", actions, dtype, _ACTION_HINT)
        if not self.is_decided:
            self._decide(shape, dtype)
        self.array[indices] = converted

    def _decide(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        if self.array.shape[1:] != shape or self.array.dtype != dtype:
            self.array = untouched((len(self.array), *shape), dtype)
        self.is_decided = True
        self._is_discrete = self.array.ndim == 1 and dtype == np.int64


class Features:
    """Additional numbers per step, rounded to their dtypes as an assignment does.

    :param owner: class of the recording, for errors
    :param size: number of steps kept
    :param dtypes: one dtype per feature
    """

    def __init__(self, owner: str, size: int, dtypes: Sequence[np.dtype[Any]]) -> None:
        self._owner = owner
        self.count = len(dtypes)
        self._dtypes = tuple(dtypes)
        self._is_structured = len(set(dtypes)) > 1
        if self._is_structured:
            self.array: NDArray[Any] = untouched(size, [(str(n), dtype) for n, dtype in enumerate(dtypes)])
        else:
            self.array = untouched((size, self.count), dtypes[0] if dtypes else np.uint8)

    def convert(self, values: Any) -> Any:
        """Return the features to store, or raise."""
        if values is None and not self.count:
            return None
        # An array without axes has __len__ but no length. A row of structured features has a length.
        is_list = hasattr(values, "__len__") and (isinstance(values, np.void) or getattr(values, "ndim", 1) > 0)
        found = None if values is None else list(values) if is_list else [values]
        if found is None or len(found) != self.count:
            raise self._wrong_count("nothing" if found is None else f"{len(found)} values")
        if self._is_structured:
            return tuple(self._convert_one(number, value) for number, value in enumerate(found))
        if not self.count:
            return None
        row = cast(self._owner, "features", values, self.array.dtype)
        if row.size != self.count:
            raise self._wrong_count(f"of shape {row.shape}")
        return row.reshape(-1)

    def _convert_one(self, number: int, value: Any) -> Any:
        name = f"features[{number}]"
        converted = cast(self._owner, name, value, self._dtypes[number])
        if converted.size != 1:
            raise ObservationError(self._owner, name, f"of shape {converted.shape}", "one number", _FEATURE_HINT)
        return converted.reshape(())[()]

    def _wrong_count(self, found: str) -> ObservationError:
        expected = f"{self.count} values" if self.count else "nothing"
        return ObservationError(self._owner, "features", found, expected, _FEATURE_HINT)

    def write(self, index: int, values: Any) -> None:
        """Store converted features."""
        if values is not None:
            self.array[index] = values


def _action_dtype(owner: str, action: Any) -> np.dtype[Any]:
    try:
        dtype = np.asarray(action).dtype
    except (TypeError, ValueError) as error:
        raise ObservationError(owner, "action", f"{type(action).__name__} ({error})", "numbers") from None
    if dtype.kind not in "biuf":
        raise ObservationError(owner, "action", f"an array of {dtype}", "numbers")
    # Later actions may be larger; eight bytes are little compared with a frame.
    return np.dtype(np.int64) if dtype.kind in "iu" and dtype != np.uint64 else dtype


def _as_shape(owner: str, shape: Any) -> tuple[int, ...]:
    axes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if not all(is_integer(axis, 1) for axis in axes):
        allowed = "it must be an integer or a tuple of integers, at least 1 each"
        raise ParameterError(owner, "action_shape", shape, allowed)
    return tuple(int(axis) for axis in axes)
