"""``DummyRecordBuffer``: counts steps, and keeps nothing."""

from __future__ import annotations

import os
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.codecs import CodecLike
from sb3_extra_buffers.recording.buffers.frameless import FramelessRecordBuffer
from sb3_extra_buffers.recording.clip import Clip
from sb3_extra_buffers.recording.dummy_array import DummyArray
from sb3_extra_buffers.stores import AUTO

_NOTHING = DummyArray()
Dummy = TypeVar("Dummy", bound="DummyRecordBuffer")


class DummyRecordBuffer(FramelessRecordBuffer):
    """Stands where a script has a recording, if nothing shall be recorded.

    It takes the arguments of ``RecordBuffer``, and every call. It counts steps, which all read as zeros and belong to
    no episode. Nothing is written: what is made of other recordings is ``None`` here, and ``load`` makes an empty one
    if there is no file.

    :param res: without effect
    :param ch_num: without effect
    :param size: how many steps would be kept
    :param dtypes: of what is read
    :param action_dtype: of the actions that are read, which are ``int64`` if it is left out
    :param action_shape: of one of these
    """

    @property
    def rewards(self) -> Any:
        """Takes what is written, and keeps nothing."""
        return _NOTHING

    actions = features = dones = rewards

    @property
    def episodes(self) -> list[range]:
        """None: nobody remembers which steps were the last ones."""
        return []

    def episode(self, number: int) -> Clip:  # noqa: ARG002
        """No steps.

        :param number: without effect
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
        """Write nothing: zeros would replace what somebody has recorded there before.

        :param path: without effect
        :param compression_method: without effect
        :param progress: without effect
        :return: 0, the size of no file
        """
        return 0

    @classmethod
    def load(cls: type[Dummy], path: str | os.PathLike[str], size: int | None = None, **options: Any) -> Dummy:
        """Count the steps of a recording that was saved. If the file is not there, as after ``save``, there are none.

        :param path: which file
        :param size: how many steps would be kept; ``None`` for as many as in the buffer that was saved, or by default
        :param options: what else the class takes
        """
        if os.path.lexists(path):
            return super().load(path, size, **options)
        return cls(**options) if size is None else cls(size=size, **options)

    def to_video(self, *args: Any, **options: Any) -> Any:  # noqa: ARG002
        """Write nothing, and return ``None``, whatever the arguments: there is nothing to show."""
        return None

    contact_sheet = to_dataset = to_minari = to_npz = to_parquet = to_video

    def _take(self, clip: Clip) -> None:
        self._added += len(clip)

    def _gather(self, steps: NDArray[np.int64], frames: bool = True) -> Clip:  # noqa: ARG002
        def zeros(column: NDArray[Any]) -> NDArray[Any]:
            return np.zeros((len(steps), *column.shape[1:]), column.dtype)

        features = zeros(self._features.array) if self.use_features else None
        return Clip(None, zeros(self._rewards.array), zeros(self._actions.array), features, zeros(self._dones))
