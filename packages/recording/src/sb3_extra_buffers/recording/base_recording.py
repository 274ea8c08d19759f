"""``BaseRecording``: reading, statistics, saving and exports of every recording, in memory or in a file."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sb3_extra_buffers.codecs import CodecLike
from sb3_extra_buffers.errors import BufferStateError, ObservationError
from sb3_extra_buffers.recording.casting import check_integer
from sb3_extra_buffers.recording.exports import (
    write_contact_sheet,
    write_dataset,
    write_minari,
    write_npz,
    write_parquet,
    write_video,
)
from sb3_extra_buffers.recording.file_format import Metadata, write_recording
from sb3_extra_buffers.recording.protocol import Clip, Step, steps_per_batch
from sb3_extra_buffers.recording.statistics import MemoryUse, Statistics, statistics_of
from sb3_extra_buffers.stores import AUTO


class BaseRecording(ABC):
    """Base class of recordings. Subclasses define ``__len__``, ``_gather`` and the abstract properties."""

    #: ``(H, W, C)`` of a frame; ``None`` if there are no frames.
    frame_shape: tuple[int, int, int] | None
    #: Whether the oldest step kept is the first of its episode.
    begins_whole: bool

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def _gather(self, steps: NDArray[np.int64], frames: bool = True) -> Clip:
        """Return valid steps, with or without their frames."""

    @property
    @abstractmethod
    def asked(self) -> Metadata:
        """Metadata given when the recording was created."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """Number of steps ever recorded."""

    @property
    @abstractmethod
    def max_size(self) -> int:
        """Number of steps that the buffer keeps."""

    @property
    @abstractmethod
    def frame_dtype(self) -> np.dtype[Any]:
        """Dtype of the frames."""

    @property
    @abstractmethod
    def memory(self) -> MemoryUse:
        """Size of the stored frames, and their uncompressed size."""

    @property
    def episodes(self) -> list[range]:
        """The steps of each episode, oldest first. The first may be cut, the last may be unfinished."""
        ends = [*(np.flatnonzero(self.without_frames().dones) + 1).tolist(), len(self)]
        return [range(start, end) for start, end in zip([0, *ends[:-1]], ends) if end > start]

    def read(self, start: int, stop: int) -> Clip:
        """Decode consecutive steps in one batch, as new arrays.

        :param start: first step; 0 is the oldest step kept
        :param stop: end of the range, exclusive, at most ``len()``
        """
        if not 0 <= start <= stop <= len(self):
            raise IndexError(f"{type(self).__name__}: steps {start} to {stop} are not all among the {len(self)} kept.")
        return self._gather(np.arange(start, stop))

    def gather(self, steps: ArrayLike, frames: bool = True) -> Clip:
        """Return any steps, in any order.

        :param steps: numbers of the steps; 0 is the oldest step kept
        :param frames: whether to decode their frames
        """
        numbers = np.asarray(steps)
        if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
            found = f"of shape {numbers.shape}, {numbers.dtype}"
            raise ObservationError(type(self).__name__, "steps", found, "integers in one dimension")
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < len(self):
            raise IndexError(f"{type(self).__name__}: steps must be from 0 to {len(self) - 1}, the steps kept.")
        return self._gather(numbers.astype(np.int64, copy=False), frames)

    def without_frames(self) -> Clip:
        """Return all steps, oldest first, without their frames."""
        return self._gather(np.arange(len(self)), frames=False)

    @overload
    def __getitem__(self, key: int) -> Step: ...
    @overload
    def __getitem__(self, key: slice) -> Clip: ...
    def __getitem__(self, key: int | slice) -> Step | Clip:
        """Return one step, or the clip of a slice."""
        if isinstance(key, slice):
            return self._gather(np.arange(*key.indices(len(self))))
        if isinstance(key, bool) or not isinstance(key, (int, np.integer)):
            raise TypeError(f"{type(self).__name__}: an index is an integer or a slice, not {type(key).__name__}.")
        if not -len(self) <= key < len(self):
            raise IndexError(f"{type(self).__name__}: there is no step {key} among the {len(self)} kept.")
        return self._gather(np.array([key % len(self)]))[0]

    def __iter__(self) -> Iterator[Step]:
        """Iterate over all steps, oldest first, decoded in batches."""
        for clip in self.batches():
            for index in range(len(clip)):
                yield clip[index]

    def batches(self, size: int | None = None, *, first: int = 0, frames: bool = True) -> Iterator[Clip]:
        """Iterate over all steps in batches, oldest first.

        :param size: steps per batch; ``None``: about 16 MB of frames
        :param first: first step
        :param frames: whether to decode frames
        """
        frame_size = math.prod(self.frame_shape) * self.frame_dtype.itemsize if self.frame_shape else 0
        count = steps_per_batch(frame_size) if size is None else size
        check_integer(type(self).__name__, "size", count)
        check_integer(type(self).__name__, "first", first, 0)
        starts = range(first, len(self), count)
        return (self._gather(np.arange(start, min(start + count, len(self))), frames) for start in starts)

    def episode(self, number: int) -> Clip:
        """Return the kept steps of an episode.

        :param number: 0 is the oldest episode, -1 the newest
        """
        found = self.episodes
        if not found:
            raise BufferStateError(type(self).__name__, "read an episode", "nothing was recorded")
        if not -len(found) <= number < len(found):
            raise IndexError(f"{type(self).__name__}: there is no episode {number} among the {len(found)} kept.")
        return self.read(found[number].start, found[number].stop)

    def statistics(self, bins: int = 10, *, terminal_frames: bool = False) -> Statistics:
        """Return statistics of episodes, actions and memory. Decodes no frame.

        :param bins: bins of the histogram of actions that are not integers
        :param terminal_frames: whether the last step of a finished episode only holds its last frame, as wrappers and
            callbacks record it. Such a step does not count as an action, nor for the length.
        """
        return statistics_of(self, bins, terminal_frames)

    def save(self, path: str | os.PathLike[str], compression_method: CodecLike = AUTO, *, progress: bool = True) -> int:
        """Write the recording to one file. An existing file is replaced when the new one is complete.

        :param path: the file; its folder must exist
        :param compression_method: codec of the frames; ``"auto"`` takes the strongest installed codec
        :param progress: whether to show a progress bar
        :return: size of the file
        """
        return write_recording(self, path, compression_method, progress)

    contact_sheet = write_contact_sheet
    to_dataset = write_dataset
    to_minari = write_minari
    to_npz = write_npz
    to_parquet = write_parquet
    to_video = write_video
