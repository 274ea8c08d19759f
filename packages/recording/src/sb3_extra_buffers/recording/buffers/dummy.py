"""``DummyRecordBuffer``: counts steps, and keeps nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.recording.buffers.frameless import FramelessRecordBuffer
from sb3_extra_buffers.recording.clip import Clip
from sb3_extra_buffers.recording.dummy_array import DummyArray


class DummyRecordBuffer(FramelessRecordBuffer):
    """Stands where a script has a recording, if nothing shall be recorded. It counts steps; they all read as zeros.

    :param res: without effect
    :param ch_num: without effect
    :param size: how many steps would be kept
    :param dtypes: of what is read
    :param others: without effect
    """

    def __init__(
        self,
        res: Any = None,
        ch_num: Any = None,
        size: int = 40_000,
        dtypes: Sequence[Any] | None = None,
        **others: Any,  # noqa: ARG002
    ) -> None:
        super().__init__(res, ch_num, size, dtypes)
        self._nothing = DummyArray()

    @property
    def rewards(self) -> Any:
        """Takes what is written, and keeps nothing."""
        return self._nothing

    actions = features = dones = rewards

    def add(self, frame: Any, reward: Any, action: Any, features: Any = None, *, done: Any = False) -> None:  # noqa: ARG002
        """Count a step."""
        self._added += 1

    def _take(self, clip: Clip) -> None:
        self._added += len(clip)

    def _gather(self, steps: NDArray[np.int64], frames: bool = True) -> Clip:  # noqa: ARG002
        count, features = len(steps), self._features.array
        extras = np.zeros((count, *features.shape[1:]), features.dtype) if self.use_features else None
        rewards, actions = np.zeros(count, self.dtypes[1]), np.zeros(count, np.int64)
        return Clip(None, rewards, actions, extras, np.zeros(count, np.bool_))
