"""What is recorded of an environment: what it shows, or what the agent sees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import ObservationError, ParameterError
from sb3_extra_buffers.recording.buffers import RecordBuffer

What = Literal["observation", "render"]
_KINDS = ("observation", "render")


def check_what(owner: str, what: str) -> None:
    """Refuse what cannot be recorded."""
    if what not in _KINDS:
        raise ParameterError(owner, "what", what, "it must be 'observation' or 'render'")


def check_rendering(owner: str, render_mode: str | None) -> None:
    """Refuse an environment that shows no images."""
    if render_mode != "rgb_array":
        allowed = f"the environment has render_mode={render_mode!r}, which gives no images"
        raise ParameterError(owner, "what", "render", allowed, "Make it with render_mode='rgb_array'.")


def seen(owner: str, observation: Any, key: str | None) -> Any:
    """The part of an observation that is recorded.

    :param owner: who records, for errors
    :param observation: what the agent sees
    :param key: which part, if it is a dictionary
    """
    if not isinstance(observation, Mapping):
        if key is None:
            return observation
        raise ParameterError(owner, "key", key, "observations are no dictionaries")
    if key not in observation:
        raise ParameterError(owner, "key", key, f"observations have the keys {', '.join(map(repr, observation))}")
    return observation[key]


def recording_for(
    owner: str, frame: NDArray[Any], size: int, options: Mapping[str, Any], otherwise: str
) -> RecordBuffer:
    """A recording for frames like this one. Its only feature says whether an episode was cut off.

    The last axis of a frame is its channels, unless the first one is smaller.

    :param owner: who records, for errors
    :param frame: the first frame
    :param size: how many steps to keep
    :param options: more arguments of the recording
    :param otherwise: how the owner records without frames, for the error
    """
    if frame.ndim not in (2, 3) or frame.dtype.kind not in "biuf":
        hint = f"Say what='render' to record what the environment shows. To record without frames, {otherwise}."
        raise ObservationError(owner, "a frame", f"of shape {frame.shape}, {frame.dtype}", "an image", hint)
    is_first = frame.ndim == 3 and frame.shape[0] < frame.shape[2]
    shape = frame.shape if frame.ndim == 3 else (*frame.shape, 1)
    height, width, channels = (*shape[1:], shape[0]) if is_first else shape
    settings = {"dtypes": [frame.dtype, np.float64, np.bool_], "channels": "first" if is_first else "last", **options}
    return RecordBuffer((height, width), channels, size, **settings)
