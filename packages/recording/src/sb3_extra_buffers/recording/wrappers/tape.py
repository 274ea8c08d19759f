"""``Tape``: what happens in one environment, written to a recording step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import BufferStateError
from sb3_extra_buffers.recording.buffers import BaseRecordBuffer

#: Makes a recording for frames like this one.
Maker = Callable[[NDArray[Any]], BaseRecordBuffer]
#: The features of a frame, made of the ``info`` that came with it.
FeaturesOf = Callable[[Mapping[str, Any]], Sequence[Any]]


class Tape:
    """Records frames with the actions that they were answered with, and the last frame of each episode without one.

    :param owner: who records, for errors
    :param recording: where to; or what makes it when the first frame is there
    :param features: makes the features of a frame. Without it, the only feature of a recording that has one says
        whether the episode was cut off after this frame
    """

    def __init__(self, owner: str, recording: BaseRecordBuffer | Maker, features: FeaturesOf | None) -> None:
        self._owner = owner
        self._recording = recording if isinstance(recording, BaseRecordBuffer) else None
        self._make = recording
        self._features = features
        self._shown: NDArray[Any] | None = None
        self._info: Mapping[str, Any] = {}
        #: Of the last action of the episode; ``None`` at its beginning.
        self._idle: NDArray[Any] | None = None

    @property
    def recording(self) -> BaseRecordBuffer:
        """What was recorded."""
        if self._recording is None:
            found, hint = "there is none before the first frame", "Reset the environment first."
            raise BufferStateError(self._owner, "show the recording", found, hint)
        return self._recording

    def begin(self, frame: Any, info: Mapping[str, Any]) -> None:
        """An episode begins. One that was not over was cut off.

        :param frame: what is seen
        :param info: what came with it
        """
        if self._idle is not None:
            self._end(cut_off=True)
        self._show(frame, info)

    def step(
        self, action: Any, reward: Any, frame: Any, info: Mapping[str, Any], *, done: bool, cut_off: bool = False
    ) -> None:
        """Something was done.

        :param action: what was done in view of the last frame
        :param reward: what it was worth
        :param frame: what is seen now
        :param info: what came with it
        :param done: whether the episode is over
        :param cut_off: whether it was cut off, and did not come to its end
        """
        self._add(reward, action, done=False, cut_off=False)
        self._idle = np.zeros_like(action)
        self._show(frame, info)
        if done:
            self._end(cut_off)

    def _show(self, frame: Any, info: Mapping[str, Any]) -> None:
        # Some environments draw their next observation in the same array.
        self._shown, self._info = np.array(frame), info
        if self._recording is None:
            assert not isinstance(self._make, BaseRecordBuffer)
            self._recording = self._make(self._shown)

    def _end(self, cut_off: bool) -> None:
        self._add(0, self._idle, done=True, cut_off=cut_off)
        self._shown = self._idle = None

    def _add(self, reward: Any, action: Any, *, done: bool, cut_off: bool) -> None:
        if self._shown is None:
            hint = "Reset the environment first."
            raise BufferStateError(self._owner, "record a step", "no episode has begun", hint)
        features: Sequence[Any] | None = None
        if self._features is not None:
            features = self._features(self._info)
        elif self.recording.feature_num == 1:
            features = [cut_off]
        self.recording.add(self._shown, reward, action, features, done=done)
