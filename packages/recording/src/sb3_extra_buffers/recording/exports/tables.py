"""Recordings as tables of Arrow: a row for each step, with the same columns in Parquet and in Hugging Face datasets."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.recording.clip import Clip
from sb3_extra_buffers.recording.exports.extras import require

#: Under this key, as JSON: what is needed to make arrays of the columns.
METADATA_KEY = "sb3_extra_buffers.recording"
#: Of what stands there.
FORMAT_VERSION = 1
#: Grey or colours, each with or without what Pillow takes for transparency; no value of it is changed.
_PNG_CHANNELS = (1, 2, 3, 4)


def about(clip: Clip) -> dict[str, Any]:
    """What the columns do not tell: shapes of actions and frames, and the dtype of frames.

    :param clip: some steps
    """
    said: dict[str, Any] = {"version": FORMAT_VERSION, "action_shape": clip.actions.shape[1:]}
    if clip.frames is not None:
        dtype = np.dtype(clip.frames.dtype.newbyteorder("<"))
        said |= {"frame_shape": clip.frames.shape[1:], "frame_dtype": dtype.str}
    return said


def columns_of(clip: Clip, steps: range, episodes: list[range]) -> dict[str, NDArray[Any]]:
    """All columns but the frames, as arrays: one row for each step.

    :param clip: the steps
    :param steps: their numbers in the recording
    :param episodes: all episodes of the recording
    """
    starts = np.array([episode.start for episode in episodes])
    numbers = np.arange(steps.start, steps.stop)
    within = np.searchsorted(starts, numbers, "right") - 1
    columns = {"episode": within.astype(np.int64), "step": numbers - starts[within]}
    columns |= {"action": clip.actions.reshape(len(clip), -1) if clip.actions.ndim > 1 else clip.actions}
    columns |= {"reward": clip.rewards, "done": clip.dones}
    return columns | dict(feature_columns(clip))


def feature_columns(clip: Clip) -> Iterator[tuple[str, NDArray[Any]]]:
    """Each feature by its name, ``feature_0`` and so on.

    :param clip: the steps
    """
    features = clip.features
    if features is None:
        return
    for number in range(len(features.dtype.names or ()) or features.shape[1]):
        yield f"feature_{number}", features[str(number)] if features.dtype.names else features[:, number]


def arrow_array(values: NDArray[Any], feature: str) -> Any:
    """A column of numbers, or of lists of numbers that are all of one length.

    :param values: shape ``(n,)`` or ``(n, k)``
    :param feature: what needs it, for the error
    """
    pa = require("pyarrow", feature)
    if values.ndim == 1:
        return pa.array(values)
    flat = pa.array(np.ascontiguousarray(values).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, values.shape[1])


def raw_frames(frames: NDArray[Any], feature: str) -> Any:
    """The bytes of each frame, as they are in memory: row by row, channels last, little-endian. No copy is made.

    :param frames: shape ``(n, H, W, C)``
    :param feature: what needs them, for the error
    """
    pa = require("pyarrow", feature)
    little = np.ascontiguousarray(frames, frames.dtype.newbyteorder("<"))
    kind = pa.binary(little[0].nbytes)
    return pa.Array.from_buffers(kind, len(little), [None, pa.py_buffer(little.reshape(-1).view(np.uint8))])


def can_be_png(frame_shape: tuple[int, int, int], dtype: np.dtype[Any]) -> bool:
    """Whether PNG keeps every value of such frames.

    :param frame_shape: height, width and channels
    :param dtype: of the values
    """
    return dtype == np.uint8 and frame_shape[2] in _PNG_CHANNELS


def png_frames(frames: NDArray[Any], feature: str) -> list[bytes]:
    """Each frame as a PNG, from which the same values come back.

    :param frames: shape ``(n, H, W, C)``
    :param feature: what needs them, for the error
    """
    shape = frames.shape[1:]
    if not can_be_png((shape[0], shape[1], shape[2]), frames.dtype):
        allowed = f"a PNG holds 1 to 4 channels of uint8, these have {shape[2]} of {frames.dtype}"
        raise ParameterError(feature, "frames", "png", allowed, "Use frames='raw'.")
    images = require("PIL.Image", feature)
    pictures = frames[..., 0] if shape[2] == 1 else frames
    return [_png(images.fromarray(picture)) for picture in pictures]


def _png(image: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, format="PNG", compress_level=3)
    return file.getvalue()
