"""``ChannelsFirst``: compressed frames of shape ``(H, W, C)`` seen as ``(C, H, W)``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sb3_extra_buffers.arrays import CompressedArray


class ChannelsFirst:
    """Looks like an array of shape ``(size, C, H, W)``. An index picks frames; what is read is a new array.

    :param images: shape ``(size, H, W, C)``
    """

    ndim = 4

    def __init__(self, images: CompressedArray) -> None:
        self._images = images
        size, height, width, channels = images.shape
        self.shape = size, channels, height, width
        self.dtype = images.dtype

    @property
    def nbytes(self) -> int:
        """What an ``ndarray`` of this shape would take."""
        return self._images.nbytes

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        frames, inside = (key[0], key[1:]) if isinstance(key, tuple) and key else (key, ())
        if frames is Ellipsis or frames is None:
            return np.asarray(self)[key]
        found = np.moveaxis(self._images[frames], -1, -3)
        picks = (slice(None),) * (found.ndim - 3)
        return found[(*picks, *inside)] if inside else found

    def __setitem__(self, key: Any, value: Any) -> None:
        given = np.asarray(value)
        self._images[key] = np.moveaxis(given, -3, -1) if given.ndim >= 3 else given

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("ChannelsFirst: an array without a copy does not exist, the frames are compressed.")
        found = np.moveaxis(np.asarray(self._images), -1, -3)
        return found if dtype is None else found.astype(dtype, copy=False)

    def fill(self, value: Any) -> None:
        """Give every frame the same content."""
        for start in range(0, len(self), 256):
            self._images[start : start + 256] = value

    def __repr__(self) -> str:
        return f"<ChannelsFirst {self.shape} of {self.dtype}, {self._images.codec}>"
