"""``FramelessRecordBuffer``: rewards, actions and features, without the frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.codecs import CodecLike
from sb3_extra_buffers.recording.buffers.base import BaseRecordBuffer
from sb3_extra_buffers.recording.dummy_array import DummyArray
from sb3_extra_buffers.recording.images import AUTO
from sb3_extra_buffers.recording.memory import NO_FRAMES, MemoryUse


class FramelessRecordBuffer(BaseRecordBuffer):
    """Records everything but frames. Takes the arguments of ``RecordBuffer``; those about frames have no effect.

    What is made of frames, ``to_video``, ``contact_sheet`` and ``to_minari``, is refused.

    :param res: without effect
    :param ch_num: without effect
    :param size: how many steps are kept
    :param dtypes: of the frames, which has no effect, of the rewards, and of each feature
    :param channels: without effect
    :param action_dtype: of the actions; ``None`` leaves it to the first one
    :param action_shape: of one action; ``None`` leaves it to the first one
    :param compression_method: without effect
    :param compression_kwargs: without effect
    :param layout: without effect
    :param prefer: without effect
    :param threads: without effect
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
        # By name, one by one: a name that is misspelled is an error here, too.
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
        """Nothing: there are no frames."""
        return NO_FRAMES

    def _fit_frame(self, frame: Any) -> None:
        """Take any frame, or none."""

    def _write_frame(self, place: int, frame: Any) -> None:
        """Keep no frame."""

    def _write_frames(self, first: int, frames: NDArray[Any] | None) -> None:
        """Keep no frames."""

    def _read_frames(self, places: NDArray[np.int64]) -> None:  # noqa: ARG002
        return None
