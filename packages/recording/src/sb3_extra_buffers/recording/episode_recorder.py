"""``EpisodeRecorder``: records the steps of one environment, and what wrappers and the callback share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import BufferStateError, ObservationError, ParameterError
from sb3_extra_buffers.recording.base_buffer import BaseRecordBuffer
from sb3_extra_buffers.recording.record_buffer import RecordBuffer

What = Literal["observation", "render"]
#: Creates a recording for frames like the given one.
RecordingFactory = Callable[[NDArray[Any]], BaseRecordBuffer]
#: Returns the features of a frame, from the ``info`` that came with it.
FeatureFunction = Callable[[Mapping[str, Any]], Sequence[Any]]


class EpisodeRecorder:
    """Records each frame with the action taken in it, and the last frame of each episode without an action.

    :param owner: class name, for errors
    :param recording: the recording, or a function that creates it for the first frame
    :param features: returns the features of a frame. Without it, if the recording has exactly one feature, that feature
        is whether the episode was truncated after this frame
    """

    def __init__(
        self, owner: str, recording: BaseRecordBuffer | RecordingFactory, features: FeatureFunction | None
    ) -> None:
        self._owner = owner
        self._recording = recording if isinstance(recording, BaseRecordBuffer) else None
        self._factory = recording
        self._features = features
        self._frame: NDArray[Any] | None = None
        self._info: Mapping[str, Any] = {}
        #: The zero action for the last frame; ``None`` before the first action of an episode.
        self._no_action: NDArray[Any] | None = None

    @property
    def recording(self) -> BaseRecordBuffer:
        """The recording."""
        if self._recording is None:
            found, hint = "there is no recording before the first frame", "Reset the environment first."
            raise BufferStateError(self._owner, "return the recording", found, hint)
        return self._recording

    def begin(self, frame: Any, info: Mapping[str, Any]) -> None:
        """Begin an episode. An unfinished episode counts as truncated.

        :param frame: first frame
        :param info: ``info`` of the reset
        """
        if self._no_action is not None:
            self._end(truncated=True)
        self._keep(frame, info)

    def step(
        self, action: Any, reward: Any, frame: Any, info: Mapping[str, Any], *, done: bool, truncated: bool = False
    ) -> None:
        """Record a step.

        :param action: the action taken in the previous frame
        :param reward: its reward
        :param frame: the new frame
        :param info: ``info`` of the step
        :param done: whether the episode is over
        :param truncated: whether it was truncated
        """
        self._add(reward, action, done=False, truncated=False)
        self._no_action = np.zeros_like(action)
        self._keep(frame, info)
        if done:
            self._end(truncated)

    def _keep(self, frame: Any, info: Mapping[str, Any]) -> None:
        # Copy: some environments draw their next observation into the same array.
        self._frame, self._info = np.array(frame), info
        if self._recording is None:
            assert not isinstance(self._factory, BaseRecordBuffer)
            self._recording = self._factory(self._frame)

    def _end(self, truncated: bool) -> None:
        self._add(0, self._no_action, done=True, truncated=truncated)
        self._frame = self._no_action = None

    def _add(self, reward: Any, action: Any, *, done: bool, truncated: bool) -> None:
        if self._frame is None:
            hint = "Reset the environment first."
            raise BufferStateError(self._owner, "record a step", "no episode has begun", hint)
        features: Sequence[Any] | None = None
        if self._features is not None:
            features = self._features(self._info)
        elif self.recording.feature_num == 1:
            features = [truncated]
        self.recording.add(self._frame, reward, action, features, done=done)


def check_what(owner: str, what: str) -> None:
    """Raise if ``what`` is unknown."""
    if what not in ("observation", "render"):
        raise ParameterError(owner, "what", what, "it must be 'observation' or 'render'")


def check_render_mode(owner: str, render_mode: str | None) -> None:
    """Raise if an environment does not render images."""
    if render_mode != "rgb_array":
        allowed = f"the environment has render_mode={render_mode!r}, which gives no images"
        raise ParameterError(owner, "what", "render", allowed, "Create it with render_mode='rgb_array'.")


def select_observation(owner: str, observation: Any, key: str | None) -> Any:
    """Return the recorded part of an observation.

    :param owner: class name, for errors
    :param observation: the observation
    :param key: key of a Dict observation
    """
    if not isinstance(observation, Mapping):
        if key is None:
            return observation
        raise ParameterError(owner, "key", key, "observations are not dictionaries")
    if key not in observation:
        raise ParameterError(owner, "key", key, f"observations have the keys {', '.join(map(repr, observation))}")
    return observation[key]


def recording_for(
    owner: str, frame: NDArray[Any], size: int, options: Mapping[str, Any], alternative: str
) -> RecordBuffer:
    """Create a recording for frames like the given one. Its feature is whether the episode was truncated.

    The last axis of a frame holds the channels, unless the first axis is shorter.

    :param owner: class name, for errors
    :param frame: first frame
    :param size: number of steps kept
    :param options: other arguments of the recording
    :param alternative: how to record without frames, for errors
    """
    if frame.ndim not in (2, 3) or frame.dtype.kind not in "biuf":
        hint = f"Use what='render' to record rendered images. To record without frames, {alternative}."
        raise ObservationError(owner, "a frame", f"of shape {frame.shape}, {frame.dtype}", "an image", hint)
    is_first = frame.ndim == 3 and frame.shape[0] < frame.shape[2]
    shape = frame.shape if frame.ndim == 3 else (*frame.shape, 1)
    height, width, channels = (*shape[1:], shape[0]) if is_first else shape
    settings = {"dtypes": [frame.dtype, np.float64, np.bool_], "channels": "first" if is_first else "last", **options}
    return RecordBuffer((height, width), channels, size, **settings)
