"""``Readable``: what every recording offers for reading, whether it is in memory or in a file."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sb3_extra_buffers.codecs import CodecLike
from sb3_extra_buffers.errors import BufferStateError, ObservationError, ParameterError
from sb3_extra_buffers.recording.asked import Asked
from sb3_extra_buffers.recording.clip import Clip, Step
from sb3_extra_buffers.recording.exporting import Exporting
from sb3_extra_buffers.recording.memory import MemoryUse
from sb3_extra_buffers.recording.saving import save_recording
from sb3_extra_buffers.recording.statistics import Statistics, statistics_of
from sb3_extra_buffers.stores import AUTO

#: About how many bytes of frames are decoded at a time.
_BATCH_NBYTES = 1 << 24
_MAX_BATCH = 4096


class Readable(Exporting, ABC):
    """Indices, slices, iteration, episodes, statistics and files, made of ``__len__`` and ``_gather``."""

    #: ``(H, W, C)`` of a frame; ``None`` if there are no frames.
    frame_shape: tuple[int, int, int] | None
    #: Whether the oldest step that is kept is the first of its episode.
    begins_whole: bool

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def _gather(self, steps: NDArray[np.int64], frames: bool = True) -> Clip:
        """Any steps, with or without their frames."""

    @property
    @abstractmethod
    def asked(self) -> Asked:
        """What was asked for when it was made."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """How many steps were ever recorded."""

    @property
    @abstractmethod
    def max_size(self) -> int:
        """How many steps the buffer keeps."""

    @property
    @abstractmethod
    def frame_dtype(self) -> np.dtype[Any]:
        """Of the elements of a frame."""

    @property
    @abstractmethod
    def memory(self) -> MemoryUse:
        """What the frames take, and what they would take as they are."""

    @property
    def episodes(self) -> list[range]:
        """The steps of each episode, as far as they are kept, oldest first. The last one may be unfinished."""
        ends = [*(np.flatnonzero(self.without_frames().dones) + 1).tolist(), len(self)]
        return [range(start, end) for start, end in zip([0, *ends[:-1]], ends) if end > start]

    def read(self, start: int, stop: int) -> Clip:
        """Decode consecutive steps in one batch. What is returned is the caller's own.

        :param start: the first step; 0 is the oldest that is kept
        :param stop: the one behind the last step, ``len()`` at the most
        """
        if not 0 <= start <= stop <= len(self):
            raise IndexError(f"{type(self).__name__}: steps {start} to {stop} are not all among the {len(self)} kept.")
        return self._gather(np.arange(start, stop))

    def gather(self, steps: ArrayLike, frames: bool = True) -> Clip:
        """Any steps, in any order.

        :param steps: their numbers; 0 is the oldest that is kept
        :param frames: whether to decode their frames
        """
        numbers = np.asarray(steps)
        if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
            found = f"of shape {numbers.shape}, {numbers.dtype}"
            raise ObservationError(type(self).__name__, "steps", found, "integers in one dimension")
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < len(self):
            raise IndexError(f"{type(self).__name__}: {len(self)} steps are kept, some of these are not among them.")
        return self._gather(numbers.astype(np.int64, copy=False), frames)

    def without_frames(self) -> Clip:
        """All steps, oldest first, with everything but their frames."""
        return self._gather(np.arange(len(self)), frames=False)

    @overload
    def __getitem__(self, key: int) -> Step: ...
    @overload
    def __getitem__(self, key: slice) -> Clip: ...
    def __getitem__(self, key: int | slice) -> Step | Clip:
        """One step, or a clip of those that a slice picks, in its order."""
        if isinstance(key, slice):
            return self._gather(np.arange(*key.indices(len(self))))
        if isinstance(key, bool) or not isinstance(key, (int, np.integer)):
            raise TypeError(f"{type(self).__name__}: an index is an integer or a slice, not {type(key).__name__}.")
        if not -len(self) <= key < len(self):
            raise IndexError(f"{type(self).__name__}: there is no step {key} among the {len(self)} kept.")
        return self._gather(np.array([key % len(self)]))[0]

    def __iter__(self) -> Iterator[Step]:
        """Every step, oldest to newest, decoded in batches."""
        for clip in self.batches():
            for index in range(len(clip)):
                yield clip[index]

    def batches(self, size: int | None = None, *, first: int = 0, frames: bool = True) -> Iterator[Clip]:
        """Every step, oldest to newest, several at a time.

        :param size: how many at a time; ``None`` for as many as take about 16 MB
        :param first: the step to begin with
        :param frames: whether to decode frames
        """
        count = self._batch() if size is None else size
        for name, value, least in (("size", count, 1), ("first", first, 0)):
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
                raise ParameterError(type(self).__name__, name, value, f"it must be an integer of at least {least}")
        starts = range(first, len(self), count)
        return (self._gather(np.arange(start, min(start + count, len(self))), frames) for start in starts)

    def episode(self, number: int) -> Clip:
        """All steps of an episode that are kept.

        :param number: 0 is the oldest, -1 the newest
        """
        found = self.episodes
        if not found:
            raise BufferStateError(type(self).__name__, "read an episode", "nothing was recorded")
        if not -len(found) <= number < len(found):
            raise IndexError(f"{type(self).__name__}: there is no episode {number} among the {len(found)} kept.")
        return self.read(found[number].start, found[number].stop)

    def statistics(self, bins: int = 10, *, terminal_frames: bool = False) -> Statistics:
        """Returns and lengths of the episodes, which actions were taken, and what memory it takes. Decodes no frame.

        :param bins: for actions that are no integers: how many classes to sort their values into
        :param terminal_frames: whether the last step of an episode that is done is nothing but its last frame, as
            wrappers and callbacks record it. It then counts neither as an action nor for the length.
        """
        return statistics_of(self, bins, terminal_frames)

    def save(self, path: str | os.PathLike[str], compression_method: CodecLike = AUTO, *, progress: bool = True) -> int:
        """Write everything to one file, which replaces what was there when all of it is on the disk.

        :param path: where to; the folder must exist
        :param compression_method: a codec for the frames; ``"auto"`` takes the strongest that is installed
        :param progress: whether to show a bar while frames are compressed
        :return: the size of the file
        """
        return save_recording(self, path, compression_method, progress)

    def _batch(self) -> int:
        if self.frame_shape is None:
            return _MAX_BATCH
        nbytes = math.prod(self.frame_shape) * self.frame_dtype.itemsize
        return max(1, min(_MAX_BATCH, _BATCH_NBYTES // nbytes))
