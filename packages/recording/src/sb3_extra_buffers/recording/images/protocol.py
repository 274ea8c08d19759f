"""What a recording needs of whatever keeps its frames."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Images(Protocol):
    """A fixed number of frames of shape ``(H, W, C)``, by their place."""

    @property
    def channels_first(self) -> Any:
        """All of them, seen as an array of shape ``(size, C, H, W)``."""

    @property
    def codec(self) -> str:
        """How they are stored, and for an automatic choice why."""

    @property
    def overhead(self) -> int:
        """Bytes of memory besides the frames."""

    def write(self, place: int, frame: NDArray[Any], /) -> None:
        """Keep a frame of the right shape and dtype. If that fails, what was there stays."""

    def write_all(self, first: int, frames: NDArray[Any], /) -> None:
        """Keep several frames, from a place on."""

    def read(self, places: NDArray[np.int64], /) -> NDArray[Any]:
        """Frames that were written, as a new array of shape ``(n, H, W, C)``."""

    def stored_nbytes(self, count: int, /) -> int:
        """How many bytes the first ``count`` frames take: all that were written."""

    def clear(self) -> None:
        """Forget all frames."""
