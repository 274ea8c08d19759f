"""The features of a recording."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import ObservationError
from sb3_extra_buffers.memory import untouched
from sb3_extra_buffers.recording.fitting import fitting

_HINT = "dtypes=[frame, reward, *features] says which there are."


class Features:
    """Some numbers more for each step, rounded to their dtypes as an assignment does.

    :param owner: the class of the recording, for errors
    :param size: how many steps are kept
    :param dtypes: one for each feature
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

    def fit(self, values: Any) -> Any:
        """The features to store, or an error."""
        if values is None and not self.count:
            return None
        # An array without axes has a length by name only; a row of structured features has one indeed.
        is_list = hasattr(values, "__len__") and (isinstance(values, np.void) or getattr(values, "ndim", 1) > 0)
        found = None if values is None else list(values) if is_list else [values]
        if found is None or len(found) != self.count:
            raise self._refused("nothing" if found is None else f"{len(found)} values")
        if self._is_structured:
            return tuple(self._one(number, value) for number, value in enumerate(found))
        if not self.count:
            return None
        row = fitting(self._owner, "features", values, self.array.dtype)
        if row.size != self.count:
            raise self._refused(f"of shape {row.shape}")
        return row.reshape(-1)

    def _one(self, number: int, value: Any) -> Any:
        name = f"features[{number}]"
        fitted = fitting(self._owner, name, value, self._dtypes[number])
        if fitted.size != 1:
            raise ObservationError(self._owner, name, f"of shape {fitted.shape}", "one number", _HINT)
        return fitted.reshape(())[()]

    def _refused(self, found: str) -> ObservationError:
        expected = f"{self.count} values" if self.count else "nothing"
        return ObservationError(self._owner, "features", found, expected, _HINT)

    def write(self, place: int, values: Any) -> None:
        """Store features that fit."""
        if values is not None:
            self.array[place] = values
