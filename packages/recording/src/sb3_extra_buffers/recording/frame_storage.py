"""Storage for the frames of a record buffer: uncompressed, or compressed in an observation store."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sb3_extra_buffers.arrays import CompressedArray
from sb3_extra_buffers.arrays.casting import broadcast
from sb3_extra_buffers.arrays.indexing import CellNumbers
from sb3_extra_buffers.checkpoints import Piece, State
from sb3_extra_buffers.codecs import CodecSpec, registry
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.heaps import StatefulHeap
from sb3_extra_buffers.memory import untouched
from sb3_extra_buffers.stores import (
    AUTO,
    BALANCED,
    MEMORY,
    MIN_FRAMES_NBYTES,
    MIN_FRAMES_STEPS,
    SPEED,
    FrameRequest,
    ObservationStore,
    Place,
    StoreRequest,
    build_stores,
    preference,
)

CELLS, FRAMES = "cells", "frames"
LAYOUTS = (AUTO, CELLS, FRAMES)
Shape = tuple[int, int, int]


class FrameStorage(Protocol):
    """A fixed number of frames of shape ``(H, W, C)``."""

    @property
    def channels_first(self) -> Any:
        """All frames as an array of shape ``(size, C, H, W)``."""

    @property
    def codec(self) -> str:
        """How frames are stored, with the reason for an automatic choice."""

    @property
    def overhead(self) -> int:
        """Memory in bytes, payloads excluded."""

    def write(self, index: int, frame: NDArray[Any], /) -> None:
        """Store a frame of the right shape and dtype. On failure, the old frame stays."""

    def write_all(self, first: int, frames: NDArray[Any], /) -> None:
        """Store consecutive frames."""

    def read(self, indices: NDArray[np.int64], /) -> NDArray[Any]:
        """Return frames that were written, as a new array of shape ``(n, H, W, C)``."""

    def stored_nbytes(self, count: int, /) -> int:
        """Size of the first ``count`` frames, which are all that were written."""

    def clear(self) -> None:
        """Remove all frames."""

    def state(self) -> dict[str, Any]:
        """Return the content as numbers, text and arrays, for pickles."""

    def restore(self, state: dict[str, Any], /) -> None:
        """Restore the result of :meth:`state` into a new storage of the same kind."""


@dataclass(frozen=True)
class FrameOptions:
    """How frames are stored; ``RecordBuffer`` explains the parameters.

    :param codec: the requested codec; ``None``: chosen automatically
    """

    codec: CodecSpec | None
    layout: str = AUTO
    prefer: str | None = None
    threads: int | None = None

    def to_plain(self) -> dict[str, Any]:
        """Return the options as plain values, for pickles."""
        return {**vars(self), "codec": None if self.codec is None else self.codec.to_json()}

    @classmethod
    def from_plain(cls, values: dict[str, Any]) -> FrameOptions:
        """Create options from :meth:`to_plain`."""
        codec = values["codec"]
        return cls(**{**values, "codec": None if codec is None else CodecSpec.from_json(codec)})


def create_frame_storage(
    owner: str, size: int, shape: Shape, dtype: np.dtype[Any], options: FrameOptions
) -> FrameStorage:
    """Create the storage for frames, or raise if the options contradict each other.

    :param owner: class of the recording, for errors
    :param size: number of frames
    :param shape: ``(H, W, C)`` of a frame
    :param dtype: dtype of the frames
    :param options: codec, layout, preference and threads
    """
    codec, layout = options.codec, options.layout
    if layout not in LAYOUTS:
        raise ParameterError(owner, "layout", layout, f"it must be one of: {', '.join(LAYOUTS)}")
    chosen = preference(owner, options.prefer or BALANCED)
    if layout == CELLS and options.prefer not in (None, SPEED):
        allowed = "it applies to the layout 'frames' only"
        raise ParameterError(owner, "prefer", options.prefer, allowed, "Leave out layout='cells' or prefer.")
    place = Place(threads=options.threads)
    is_raw = codec is not None and registry.load(codec.name).identity
    if is_raw and layout != FRAMES:
        return RawFrames(size, shape, dtype)
    is_large = math.prod(shape) * dtype.itemsize >= MIN_FRAMES_NBYTES and size >= MIN_FRAMES_STEPS
    request = StoreRequest(owner, shape, dtype, size, codec=codec, prefer=MEMORY)  # no training waits for a recording
    if layout == FRAMES or (layout == AUTO and is_large):
        request = FrameRequest(owner, shape, dtype, size, codec=codec, preference=chosen)
    (store,), heap = build_stores([request], place)
    assert heap is None or isinstance(heap, StatefulHeap)
    return CompressedFrames(store, heap, size, shape, dtype)


class RawFrames:
    """Uncompressed frames in one array. The system allocates its memory page by page.

    :param size: number of frames
    :param shape: ``(H, W, C)`` of a frame
    :param dtype: dtype of the frames
    """

    codec = "none"
    overhead = 0

    def __init__(self, size: int, shape: Shape, dtype: np.dtype[Any]) -> None:
        self._array: NDArray[Any] = untouched((size, *shape), dtype)
        #: End of the part that was ever written.
        self._end = 0

    @property
    def channels_first(self) -> NDArray[Any]:
        return self._array.transpose(0, 3, 1, 2)

    def write(self, index: int, frame: NDArray[Any], /) -> None:
        self._array[index] = frame
        self._end = max(self._end, index + 1)

    def write_all(self, first: int, frames: NDArray[Any], /) -> None:
        self._array[first : first + len(frames)] = frames
        self._end = max(self._end, first + len(frames))

    def read(self, indices: NDArray[np.int64], /) -> NDArray[Any]:
        return self._array[indices]

    def stored_nbytes(self, count: int, /) -> int:
        return count * (self._array.nbytes // len(self._array))

    def clear(self) -> None:
        """Do nothing: old frames are overwritten before they are read."""

    def state(self) -> dict[str, Any]:
        return {"frames": self._array[: self._end].copy()}

    def restore(self, state: dict[str, Any], /) -> None:
        self.write_all(0, state["frames"])


class CompressedFrames:
    """Compressed frames in an observation store.

    :param store: the store, one cell per frame
    :param heap: the heap of the store; ``None`` if the store needs none
    :param size: number of frames
    :param shape: ``(H, W, C)`` of a frame
    :param dtype: dtype of the frames
    """

    def __init__(self, store: ObservationStore, heap: Any, size: int, shape: Shape, dtype: np.dtype[Any]) -> None:
        self._store, self._heap = store, heap
        self._array = CompressedArray.over(store, CellNumbers((size,)), shape, dtype)

    @property
    def channels_first(self) -> ChannelsFirst:
        return ChannelsFirst(self._array)

    @property
    def codec(self) -> str:
        return self._array.codec

    @property
    def overhead(self) -> int:
        index: int = 0 if self._heap is None else self._heap.nbytes - self._heap.capacity
        return self._store.overhead + index

    def write(self, index: int, frame: NDArray[Any], /) -> None:
        self._array[index] = frame

    def write_all(self, first: int, frames: NDArray[Any], /) -> None:
        self._array[first : first + len(frames)] = frames

    def read(self, indices: NDArray[np.int64], /) -> NDArray[Any]:
        found: NDArray[Any] = self._array[indices]
        return found

    def stored_nbytes(self, count: int, /) -> int:  # noqa: ARG002
        return self._array.nbytes_stored

    def clear(self) -> None:
        self._store.clear()

    def state(self) -> dict[str, Any]:
        state = State().put("store", self._store.state())
        if self._heap is not None:
            state.put("heap", self._heap.state())
        logs = {log.key: (log.begin, b"".join(map(bytes, log.read(log.begin, log.end)))) for log in state.logs}
        return {"facts": state.facts, "arrays": state.arrays, "logs": logs}

    def restore(self, state: dict[str, Any], /) -> None:
        pieces = {key: [Piece(begin, np.frombuffer(log, np.uint8))] for key, (begin, log) in state["logs"].items()}
        found = State(state["facts"], state["arrays"], pieces=pieces)
        if self._heap is not None:
            self._heap.restore(found.part("heap"))
        self._store.restore(found.part("store"))


class ChannelsFirst:
    """View of compressed frames of shape ``(size, H, W, C)`` as an array of shape ``(size, C, H, W)``.

    Every numpy index can be read and written. Reading returns a new array. Every frame that an index touches is decoded
    whole; writing a part of a frame writes the whole frame.

    :param array: shape ``(size, H, W, C)``
    """

    ndim = 4

    def __init__(self, array: CompressedArray) -> None:
        self._array = array
        size, height, width, channels = array.shape
        self.shape = size, channels, height, width
        self.dtype = array.dtype

    @property
    def nbytes(self) -> int:
        """Size of an ``ndarray`` of this shape."""
        return self._array.nbytes

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        frames, inside = self._split(key)
        return self._read(frames)[inside]

    def __setitem__(self, key: Any, value: Any) -> None:
        given = self._array.fit(type(self).__name__, "value", value)
        if key is Ellipsis or (not isinstance(key, tuple) and _is_frame_index(key)):
            # Whole frames: the old ones need not be decoded.
            given = given.reshape((1,) * (3 - given.ndim) + given.shape)
            self._array[key] = np.moveaxis(given, -3, -1)
            return
        frames, inside = self._split(key)
        content = self._read(frames)
        content[inside] = broadcast(given, content[inside].shape)
        self._array[frames] = np.moveaxis(content, -3, -1)

    def _split(self, key: Any) -> tuple[Any, tuple[Any, ...]]:
        """Split an index: the frames it touches, each once, and the index into these frames."""
        parts = key if isinstance(key, tuple) else (key,)
        if not parts or not _is_frame_index(parts[0]):
            return slice(None), parts
        first, *inside = parts
        # numpy treats slices, integers and arrays differently beside other parts of an index, so each keeps its kind.
        if isinstance(first, slice):
            return first, (slice(None), *inside)
        numbers = np.asarray(np.arange(len(self))[first])
        touched, positions = np.unique(numbers, return_inverse=True)
        return touched, (positions.reshape(numbers.shape) if numbers.ndim else 0, *inside)

    def _read(self, frames: Any) -> NDArray[Any]:
        return np.moveaxis(self._array[frames], -1, -3)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("ChannelsFirst: the frames are compressed, so an array needs a copy.")
        found = np.moveaxis(np.asarray(self._array), -1, -3)
        return found if dtype is None else found.astype(dtype, copy=False)

    def fill(self, value: Any) -> None:
        """Set every frame to the same value."""
        for start in range(0, len(self), 256):
            self._array[start : start + 256] = value

    def __repr__(self) -> str:
        return f"<ChannelsFirst {self.shape} of {self.dtype}, {self._array.codec}>"


def _is_frame_index(part: Any) -> bool:
    """Whether a part of an index applies to the axis of the frames only."""
    if part is None or part is Ellipsis:
        return False
    array = np.asarray(part)
    return array.dtype != np.bool_ or array.ndim == 1
