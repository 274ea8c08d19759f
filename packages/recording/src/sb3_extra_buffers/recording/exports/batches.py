"""A recording in pieces: never more than some megabytes of it are decoded at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator

from sb3_extra_buffers.errors import BufferStateError, ParameterError
from sb3_extra_buffers.recording.clip import Clip
from sb3_extra_buffers.recording.recording import Recording

#: About how many values of frames are decoded at a time.
_BATCH_VALUES = 1 << 24
_MAX_BATCH = 4096


def chosen_steps(recording: Recording, steps: range | None, feature: str, *, frames: bool = False) -> range:
    """The steps to export, or an error if there are none.

    :param recording: what to export
    :param steps: consecutive ones, such as one of ``recording.episodes``; ``None`` for all
    :param feature: what exports, for the error
    :param frames: whether there must be frames
    """
    if not len(recording):
        hint = "Record something first."
        raise BufferStateError(type(recording).__name__, feature, "nothing was recorded", hint)
    if frames and recording.frame_shape is None:
        hint = "Use a RecordBuffer for what you want to look at."
        raise BufferStateError(type(recording).__name__, feature, "it has no frames", hint)
    if steps is None:
        return range(len(recording))
    if steps.step != 1 or not 0 <= steps.start < steps.stop <= len(recording):
        allowed = f"it must be a range of consecutive steps of the {len(recording)} that are kept"
        raise ParameterError(feature, "steps", steps, allowed, "One of recording.episodes is such a range.")
    return steps


def batches(recording: Recording, steps: range, size: int | None = None) -> Iterator[tuple[range, Clip]]:
    """Some steps at a time, with their numbers.

    :param recording: what to read
    :param steps: which steps
    :param size: how many at a time; ``None`` for as many as take some megabytes
    """
    count = size or max(1, min(_MAX_BATCH, _BATCH_VALUES // max(1, math.prod(recording.frame_shape or (0,)))))
    for start in range(steps.start, steps.stop, count):
        numbers = range(start, min(start + count, steps.stop))
        yield numbers, recording.read(numbers.start, numbers.stop)
