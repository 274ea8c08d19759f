"""``CompressedImages``: frames in a compressed array of the core."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.arrays import CompressedArray
from sb3_extra_buffers.arrays.indexing import CellNumbers
from sb3_extra_buffers.codecs import CellSpec
from sb3_extra_buffers.compressed.options import StorageOptions
from sb3_extra_buffers.recording.images.channels_first import ChannelsFirst
from sb3_extra_buffers.stores import Demand, FrameDemand, Store, build_stores, preference


class CompressedImages:
    """Frames, each stored as what changed since the one before it, or by itself; all payloads in one heap.

    :param owner: the class of the recording, for errors
    :param size: how many there can be
    :param shape: ``(H, W, C)``
    :param dtype: of their elements
    :param options: how to store them
    """

    def __init__(
        self, owner: str, size: int, shape: tuple[int, int, int], dtype: np.dtype[Any], options: StorageOptions
    ) -> None:
        codec = options.codec(None)
        demand: Demand | FrameDemand = Demand(owner, CellSpec(dtype, math.prod(shape)), (size,), codec)
        if options.wants_frames(shape, dtype, codec, size):
            demand = FrameDemand(owner, shape, dtype, size, 1, 1, preference(owner, options.prefer), codec)
        ((store,),), self._heap = build_stores([demand], options.place)
        self._store: Store = store
        self._array = CompressedArray.over(store, CellNumbers((size,)), shape, dtype)

    @property
    def channels_first(self) -> ChannelsFirst:
        return ChannelsFirst(self._array)

    @property
    def codec(self) -> str:
        return self._array.codec

    @property
    def overhead(self) -> int:
        index = 0 if self._heap is None else self._heap.nbytes - self._heap.capacity
        return self._store.overhead + index

    def write(self, place: int, frame: NDArray[Any], /) -> None:
        self._array[place] = frame

    def write_all(self, first: int, frames: NDArray[Any], /) -> None:
        self._array[first : first + len(frames)] = frames

    def read(self, places: NDArray[np.int64], /) -> NDArray[Any]:
        found: NDArray[Any] = self._array[places]
        return found

    def stored_nbytes(self, count: int, /) -> int:  # noqa: ARG002
        return self._array.nbytes_stored

    def clear(self) -> None:
        self._store.clear()
