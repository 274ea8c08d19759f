"""What to make a buffer with that a saved recording fits into."""

from __future__ import annotations

from typing import Any

from sb3_extra_buffers.errors import FileContentError
from sb3_extra_buffers.recording.saved import SavedRecording


def constructor_arguments(saved: SavedRecording, size: int | None, keeps_frames: bool) -> dict[str, Any]:
    """The arguments that all three classes take, as a recording says them.

    :param saved: what shall fit
    :param size: how many steps to keep; ``None`` for as many as in the buffer that was saved
    :param keeps_frames: whether the class needs frames
    """
    if keeps_frames and saved.frame_shape is None:
        hint = "FramelessRecordBuffer.load takes it."
        raise FileContentError(str(saved.path), "a recording with frames", "one without", hint)
    height, width, channels = saved.frame_shape or (1, 1, 1)
    features: list[Any] = []
    if saved.features is not None:
        fields = saved.features.dtype.fields
        several = [saved.features.dtype] * (saved.features.shape[-1] if fields is None else 0)
        features = several or [saved.features.dtype[name] for name in saved.features.dtype.names or ()]
    return {
        "res": (height, width),
        "ch_num": channels,
        "size": saved.max_size if size is None else size,
        "dtypes": [saved.frame_dtype, saved.rewards.dtype, *features],
    }


def as_asked(saved: SavedRecording, options: dict[str, Any]) -> dict[str, Any]:
    """The other arguments: what was asked for when the recording was made, unless somebody asks for something else now.

    What its first action decided is not among them: it would be taken for a request, to which actions are rounded.

    :param saved: what shall fit
    :param options: what is asked for now
    """
    asked = saved.asked
    said = {"channels": asked.channels, "action_dtype": asked.action_dtype, "action_shape": asked.action_shape}
    return {**said, **options}
