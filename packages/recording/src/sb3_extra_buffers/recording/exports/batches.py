"""Selection of the steps to export, and reading them in batches of limited size."""

from __future__ import annotations

import math
from collections.abc import Iterator

from sb3_extra_buffers.errors import BufferStateError, ParameterError
from sb3_extra_buffers.recording.protocol import Clip, Recording, steps_per_batch


def select_steps(recording: Recording, steps: range | None, feature: str, *, frames: bool = False) -> range:
    """Return the steps to export, or raise if there are none.

    :param recording: the recording
    :param steps: consecutive steps, such as one of ``recording.episodes``; ``None`` for all
    :param feature: name of the export, for errors
    :param frames: whether the export needs frames
    """
    if not len(recording):
        hint = "Record something first."
        raise BufferStateError(type(recording).__name__, feature, "nothing was recorded", hint)
    if frames and recording.frame_shape is None:
        hint = "Use a RecordBuffer to record frames."
        raise BufferStateError(type(recording).__name__, feature, "it has no frames", hint)
    if steps is None:
        return range(len(recording))
    if steps.step != 1 or not 0 <= steps.start < steps.stop <= len(recording):
        allowed = f"it must be a range of consecutive steps of the {len(recording)} that are kept"
        raise ParameterError(feature, "steps", steps, allowed, "Each of recording.episodes is such a range.")
    return steps


def batches(recording: Recording, steps: range, size: int | None = None) -> Iterator[tuple[range, Clip]]:
    """Iterate over batches of steps, with their numbers.

    :param recording: the recording
    :param steps: steps to read
    :param size: steps per batch; ``None``: some megabytes of frames
    """
    count = size or steps_per_batch(math.prod(recording.frame_shape or (0,)))
    for start in range(steps.start, steps.stop, count):
        numbers = range(start, min(start + count, steps.stop))
        yield numbers, recording.read(numbers.start, numbers.stop)
