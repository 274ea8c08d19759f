"""Record buffers that keep no frames: ``FramelessRecordBuffer``, and ``DummyRecordBuffer``, which keeps nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.codecs import CodecLike
from sb3_extra_buffers.recording.base_buffer import BaseRecordBuffer
from sb3_extra_buffers.recording.frame_format import AUTO
from sb3_extra_buffers.recording.protocol import Clip, public
from sb3_extra_buffers.recording.statistics import NO_FRAMES, MemoryUse

Dummy = TypeVar("Dummy", bound="DummyRecordBuffer")


@public
class DummyArray:
    """An array that keeps nothing: writing has no effect, reading is an error."""

    nbytes = 0

    def __setitem__(self, key: Any, value: Any) -> None:
        """Do nothing."""

    def __getitem__(self, key: Any) -> Any:
        raise TypeError("DummyArray: nothing is kept here, so there is nothing to read.")

    def transpose(self, *axes: Any) -> DummyArray:  # noqa: ARG002
        """Return this array."""
        return self

    def fill(self, value: Any) -> None:
        """Do nothing."""

    def __repr__(self) -> str:
        return "DummyArray()"


@public
class FramelessRecordBuffer(BaseRecordBuffer):
    """Records rewards, actions and features. Takes the arguments of ``RecordBuffer``; those of frames have no effect.

    ``to_video``, ``contact_sheet`` and ``to_minari`` need frames and raise an error.

    :param res: no effect
    :param ch_num: no effect
    :param size: number of steps kept
    :param dtypes: dtypes of the frames (no effect), of the rewards, and of each feature
    :param channels: no effect
    :param action_dtype: dtype of the actions; ``None``: set by the first action
    :param action_shape: shape of one action; ``None``: set by the first action
    :param compression_method: no effect
    :param compression_kwargs: no effect
    :param layout: no effect
    :param prefer: no effect
    :param threads: no effect
    """

    def __init__(
        self,
        res: Any = None,  # noqa: ARG002
        ch_num: Any = None,  # noqa: ARG002
        size: int = 40_000,
        dtypes: Sequence[Any] | None = None,
        *,
        channels: str = AUTO,  # noqa: ARG002
        action_dtype: Any = None,
        action_shape: int | tuple[int, ...] | None = None,
        # One by one instead of **options, so that a misspelled name is an error.
        compression_method: CodecLike = AUTO,  # noqa: ARG002
        compression_kwargs: Mapping[str, Any] | None = None,  # noqa: ARG002
        layout: str = AUTO,  # noqa: ARG002
        prefer: str | None = None,  # noqa: ARG002
        threads: int | None = None,  # noqa: ARG002
    ) -> None:
        super().__init__(size, dtypes, action_dtype=action_dtype, action_shape=action_shape)
        self.frames = DummyArray()

    @property
    def memory(self) -> MemoryUse:
        """Memory use without frames: all sizes are 0."""
        return NO_FRAMES

    def _convert_frame(self, frame: Any) -> None:
        """Accept any frame."""

    def _write_frame(self, index: int, frame: Any) -> None:
        """Do nothing."""

    def _write_frames(self, first: int, frames: NDArray[Any] | None) -> None:
        """Do nothing."""

    def _read_frames(self, indices: NDArray[np.int64]) -> None:  # noqa: ARG002
        return None


@public
class DummyRecordBuffer(FramelessRecordBuffer):
    """Replaces a recording in a script that shall not record.

    It takes the arguments and calls of ``RecordBuffer`` and only counts steps. All steps read as zeros and belong to no
    episode. Nothing is written: exports return ``None``, and ``load`` returns an empty buffer if there is no file.

    :param res: no effect
    :param ch_num: no effect
    :param size: number of steps that would be kept
    :param dtypes: dtypes of the zeros
    :param action_dtype: dtype of the actions; default: ``int64``
    :param action_shape: shape of one action
    """

    @property
    def rewards(self) -> Any:
        """An array that keeps nothing."""
        return _NOTHING

    actions = features = dones = rewards

    @property
    def episodes(self) -> list[range]:
        """An empty list: ends of episodes are not kept."""
        return []

    def episode(self, number: int) -> Clip:  # noqa: ARG002
        """Return a clip without steps.

        :param number: no effect
        """
        return self._gather(np.arange(0))

    def add(self, frame: Any, reward: Any, action: Any, features: Any = None, *, done: Any = False) -> None:  # noqa: ARG002
        """Count a step."""
        self._added += 1

    def save(
        self,
        path: str | os.PathLike[str],  # noqa: ARG002
        compression_method: CodecLike = AUTO,  # noqa: ARG002
        *,
        progress: bool = True,  # noqa: ARG002
    ) -> int:
        """Write nothing, so that an existing recording is not replaced by zeros.

        :param path: no effect
        :param compression_method: no effect
        :param progress: no effect
        :return: 0
        """
        return 0

    @classmethod
    def load(cls: type[Dummy], path: str | os.PathLike[str], size: int | None = None, **options: Any) -> Dummy:
        """Count the steps of a saved recording. Without a file, as after ``save``, there are none.

        :param path: the file
        :param size: number of steps that would be kept; ``None``: as in the saved buffer, or the default
        :param options: other arguments of the class
        """
        if os.path.lexists(path):
            return super().load(path, size, **options)
        return cls(**options) if size is None else cls(size=size, **options)

    def to_video(self, *args: Any, **options: Any) -> Any:  # noqa: ARG002
        """Write nothing and return ``None``."""
        return None

    contact_sheet = to_dataset = to_minari = to_npz = to_parquet = to_video

    def _append(self, clip: Clip) -> None:
        self._added += len(clip)

    def _gather(self, steps: NDArray[np.int64], frames: bool = True) -> Clip:  # noqa: ARG002
        def zeros(column: NDArray[Any]) -> NDArray[Any]:
            return np.zeros((len(steps), *column.shape[1:]), column.dtype)

        features = zeros(self._features.array) if self.use_features else None
        return Clip(None, zeros(self._rewards.array), zeros(self._actions.array), features, zeros(self._dones))


_NOTHING = DummyArray()
