"""``ChannelsFirst``: compressed frames of shape ``(H, W, C)`` seen as ``(C, H, W)``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sb3_extra_buffers.arrays import CompressedArray
from sb3_extra_buffers.arrays.casting import broadcast


class ChannelsFirst:
    """Looks like an array of shape ``(size, C, H, W)``, for reading and for writing. What is read is a new array.

    An index may be any that numpy takes. Frames that it touches are decoded as a whole; one that reaches into frames
    also writes them as a whole.

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
        frames, inside = self._split(key)
        return self._read(frames)[inside]

    def __setitem__(self, key: Any, value: Any) -> None:
        given = self._images.fit(type(self).__name__, "value", value)
        if key is Ellipsis or (not isinstance(key, tuple) and _picks_frames(key)):
            # Frames as a whole: those that were there need not be decoded.
            given = given.reshape((1,) * (3 - given.ndim) + given.shape)
            self._images[key] = np.moveaxis(given, -3, -1)
            return
        frames, inside = self._split(key)
        content = self._read(frames)
        content[inside] = broadcast(given, content[inside].shape)
        self._images[frames] = np.moveaxis(content, -3, -1)

    def _split(self, key: Any) -> tuple[Any, tuple[Any, ...]]:
        """The frames that an index touches, each once, and the index that picks the same of these alone."""
        parts = key if isinstance(key, tuple) else (key,)
        if not parts or not _picks_frames(parts[0]):
            return slice(None), parts
        first, *inside = parts
        # To numpy, a slice, a number and an array beside other parts mean different things: each stays what it is.
        if isinstance(first, slice):
            return first, (slice(None), *inside)
        numbers = np.asarray(np.arange(len(self))[first])
        touched, places = np.unique(numbers, return_inverse=True)
        return touched, (places.reshape(numbers.shape) if numbers.ndim else 0, *inside)

    def _read(self, frames: Any) -> NDArray[Any]:
        return np.moveaxis(self._images[frames], -1, -3)

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


def _picks_frames(part: Any) -> bool:
    """Whether a part of an index stands for the axis of the frames, and for no other."""
    if part is None or part is Ellipsis:
        return False
    array = np.asarray(part)
    return array.dtype != np.bool_ or array.ndim == 1
