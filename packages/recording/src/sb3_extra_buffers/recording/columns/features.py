"""The features of a recording."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import ObservationError
from sb3_extra_buffers.recording.fitting import fitting
from sb3_extra_buffers.views import untouched


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
        found = None if values is None else list(values) if hasattr(values, "__len__") else [values]
        if found is None or len(found) != self.count:
            said = "nothing" if found is None else f"{len(found)} values"
            expected = f"{self.count} values" if self.count else "nothing"
            hint = "dtypes=[frame, reward, *features] says which there are."
            raise ObservationError(self._owner, "features", said, expected, hint)
        if not self._is_structured:
            return fitting(self._owner, "features", values, self.array.dtype).reshape(-1) if self.count else None
        pairs = zip(found, self._dtypes)
        return tuple(fitting(self._owner, f"features[{n}]", *pair)[()] for n, pair in enumerate(pairs))

    def write(self, place: int, values: Any) -> None:
        """Store features that fit."""
        if values is not None:
            self.array[place] = values
