"""The rewards of a recording."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import ObservationError
from sb3_extra_buffers.memory import untouched
from sb3_extra_buffers.recording.fitting import fitting


class Rewards:
    """One number for each step, rounded to the dtype of the recording as an assignment does.

    :param owner: the class of the recording, for errors
    :param size: how many steps are kept
    :param dtype: of the rewards
    """

    def __init__(self, owner: str, size: int, dtype: np.dtype[Any]) -> None:
        self._owner = owner
        self.array: NDArray[Any] = untouched(size, dtype)
        #: What a float may be at the most to need no second look; numbers that are none need one.
        self._limit = float(np.finfo(dtype).max) if dtype.kind == "f" and dtype.itemsize <= 8 else -1.0

    def fit(self, value: Any) -> Any:
        """The value to store, or an error."""
        if type(value) is float and -self._limit <= value <= self._limit:
            return value
        found = fitting(self._owner, "reward", value, self.array.dtype)
        if found.size != 1:
            raise ObservationError(self._owner, "reward", f"of shape {found.shape}", "one number")
        return found.reshape(())
