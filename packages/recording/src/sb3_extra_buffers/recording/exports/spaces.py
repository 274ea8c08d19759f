"""Spaces for what was recorded, where nobody says which they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from sb3_extra_buffers.errors import ObservationError
from sb3_extra_buffers.recording.exports.extras import require
from sb3_extra_buffers.recording.recording import Recording

_NAME = "to_minari"


def frame_space(recording: Recording) -> Any:
    """All frames of the shape and dtype that were recorded.

    :param recording: one with frames
    """
    spaces = require("gymnasium.spaces", _NAME)
    frames = recording.read(0, 1).frames
    assert frames is not None
    dtype = frames.dtype
    if dtype.kind == "b":
        hint = "Record them as uint8, or name an observation_space."
        raise ObservationError(_NAME, "a frame", "of bool", "numbers: Gymnasium has no space of truth values", hint)
    low, high = (np.iinfo(dtype).min, np.iinfo(dtype).max) if dtype.kind in "iu" else (-np.inf, np.inf)
    return spaces.Box(low, high, frames.shape[1:], dtype.type)


def action_space_of(recording: Recording) -> Any:
    """The least space that holds all actions: numbers that can be counted, or arrays between bounds.

    :param recording: one with steps
    """
    spaces = require("gymnasium.spaces", _NAME)
    actions = recording.without_frames().actions
    if actions.dtype.kind == "f":
        return spaces.Box(-np.inf, np.inf, actions.shape[1:], actions.dtype.type)
    least, greatest = actions.min(axis=0), actions.max(axis=0)
    if actions.ndim == 1:
        start = min(int(least), 0)
        return spaces.Discrete(int(greatest) - start + 1, start=start)
    return spaces.Box(least, greatest, actions.shape[1:], actions.dtype.type)
