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
        "action_dtype": saved.actions.dtype,
        "action_shape": saved.actions.shape[1:],
    }
