"""``PlainImages``: frames as they are, for ``compression_method="none"``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.memory import untouched


class PlainImages:
    """Frames in one array, whose memory is taken page by page as they come.

    :param size: how many there can be
    :param shape: ``(H, W, C)``
    :param dtype: of their elements
    """

    codec = "none"
    overhead = 0

    def __init__(self, size: int, shape: tuple[int, int, int], dtype: np.dtype[Any]) -> None:
        self._array: NDArray[Any] = untouched((size, *shape), dtype)
        #: Behind the last place that was ever written.
        self._end = 0

    @property
    def channels_first(self) -> NDArray[Any]:
        return self._array.transpose(0, 3, 1, 2)

    def write(self, place: int, frame: NDArray[Any], /) -> None:
        self._array[place] = frame
        self._end = max(self._end, place + 1)

    def write_all(self, first: int, frames: NDArray[Any], /) -> None:
        self._array[first : first + len(frames)] = frames
        self._end = max(self._end, first + len(frames))

    def read(self, places: NDArray[np.int64], /) -> NDArray[Any]:
        return self._array[places]

    def stored_nbytes(self, count: int, /) -> int:
        return count * (self._array.nbytes // len(self._array))

    def clear(self) -> None:
        """Nothing to do: what is there is not read before it is overwritten."""

    def __getstate__(self) -> dict[str, Any]:
        return {"_end": self._end, "used": self._array[: self._end].copy(), "size": len(self._array)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        used, self._end = state["used"], state["_end"]
        self._array = untouched((state["size"], *used.shape[1:]), used.dtype)
        self._array[: self._end] = used
