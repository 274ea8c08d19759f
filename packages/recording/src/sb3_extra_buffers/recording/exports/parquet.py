"""``write_parquet``: a recording as a Parquet file; and its Arrow columns, which Hugging Face datasets share."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.progress import progress_bar
from sb3_extra_buffers.recording.exports.batches import batches, select_steps
from sb3_extra_buffers.recording.exports.extras import require
from sb3_extra_buffers.recording.exports.files import AnyPath, new_file
from sb3_extra_buffers.recording.protocol import Clip, Recording

_NAME = "to_parquet"
#: Key of the metadata of a table: JSON with what is needed to convert its columns to arrays.
METADATA_KEY = "sb3_extra_buffers.recording"
#: Version of that metadata.
FORMAT_VERSION = 1
#: Numbers of channels that a PNG keeps unchanged: grey or RGB, each with or without alpha.
_PNG_CHANNELS = (1, 2, 3, 4)


def write_parquet(
    recording: Recording,
    path: AnyPath,
    *,
    steps: range | None = None,
    frames: Literal["raw", "png"] = "raw",
    progress: bool = True,
) -> Path:
    """
    Write a Parquet file with one row per step, losslessly. Needs the extra ``parquet``.

    Columns: ``episode``, ``step`` (in its episode), ``action`` (a number or a list), ``reward``, ``done``,
    ``feature_0`` and so on if there are features, and ``frame`` if there are frames. The metadata of the file holds
    JSON under ``METADATA_KEY`` with ``frames``, ``frame_shape``, ``frame_dtype`` and ``action_shape``, to convert the
    bytes of a frame to an array.

    :param recording: the recording
    :param path: the file
    :param steps: consecutive steps, such as one of ``recording.episodes``; ``None`` for all
    :param frames: ``"raw"`` for the bytes of the arrays; ``"png"`` for images that other tools show, for frames of 1 to
        4 channels of ``uint8``
    :param progress: whether to show a progress bar on a terminal, if rich or tqdm is installed
    """
    target = Path(path)
    chosen = select_steps(recording, steps, _NAME)
    if frames not in ("raw", "png"):
        raise ParameterError(_NAME, "frames", frames, "it must be 'raw' or 'png'")
    pq = require("pyarrow.parquet", _NAME)
    episodes = recording.episodes
    writer: Any = None
    with new_file(target, _NAME) as file, progress_bar(_NAME, len(chosen), progress) as advance:
        try:
            for numbers, clip in batches(recording, chosen):
                table = _table(clip, numbers, episodes, frames)
                if writer is None:
                    # A dictionary of frames would store each frame twice.
                    names = [name for name in table.column_names if name != "frame"]
                    writer = pq.ParquetWriter(file, table.schema, compression="zstd", use_dictionary=names)
                writer.write_table(table)
                advance(len(numbers))
        finally:
            if writer is not None:
                writer.close()
    return target


def _table(clip: Clip, steps: range, episodes: list[range], encoding: str) -> Any:
    pa = require("pyarrow", _NAME)
    columns = {name: arrow_array(values, _NAME) for name, values in step_columns(clip, steps, episodes).items()}
    metadata = table_metadata(clip)
    if clip.frames is not None:
        is_raw = encoding == "raw"
        columns["frame"] = _raw_frames(clip.frames) if is_raw else pa.array(png_frames(clip.frames, _NAME), pa.binary())
        metadata["frames"] = encoding
    return pa.table(columns).replace_schema_metadata({METADATA_KEY: json.dumps(metadata)})


def _raw_frames(frames: NDArray[Any]) -> Any:
    """Return the bytes of each frame in C order, channels last, little-endian, without a copy."""
    pa = require("pyarrow", _NAME)
    little = np.ascontiguousarray(frames, frames.dtype.newbyteorder("<"))
    kind = pa.binary(little[0].nbytes)
    return pa.Array.from_buffers(kind, len(little), [None, pa.py_buffer(little.reshape(-1).view(np.uint8))])


def table_metadata(clip: Clip) -> dict[str, Any]:
    """Return the metadata of a table: shapes of actions and frames, and the dtype of frames.

    :param clip: some steps
    """
    metadata: dict[str, Any] = {"version": FORMAT_VERSION, "action_shape": clip.actions.shape[1:]}
    if clip.frames is not None:
        dtype = np.dtype(clip.frames.dtype.newbyteorder("<"))
        metadata |= {"frame_shape": clip.frames.shape[1:], "frame_dtype": dtype.str}
    return metadata


def step_columns(clip: Clip, steps: range, episodes: list[range]) -> dict[str, NDArray[Any]]:
    """Return all columns but the frames as arrays, one row per step.

    :param clip: the steps
    :param steps: their numbers in the recording
    :param episodes: all episodes of the recording
    """
    starts = np.array([episode.start for episode in episodes])
    numbers = np.arange(steps.start, steps.stop)
    episode_numbers = np.searchsorted(starts, numbers, "right") - 1
    columns = {"episode": episode_numbers.astype(np.int64), "step": numbers - starts[episode_numbers]}
    columns |= {"action": clip.actions.reshape(len(clip), -1) if clip.actions.ndim > 1 else clip.actions}
    columns |= {"reward": clip.rewards, "done": clip.dones}
    return columns | dict(feature_columns(clip))


def feature_columns(clip: Clip) -> Iterator[tuple[str, NDArray[Any]]]:
    """Iterate over the features with their names, ``feature_0`` and so on.

    :param clip: the steps
    """
    features = clip.features
    if features is None:
        return
    for number in range(len(features.dtype.names or ()) or features.shape[1]):
        yield f"feature_{number}", features[str(number)] if features.dtype.names else features[:, number]


def arrow_array(values: NDArray[Any], feature: str) -> Any:
    """Return an Arrow column of numbers, or of lists of one length.

    :param values: shape ``(n,)`` or ``(n, k)``
    :param feature: name of the export, for errors
    """
    pa = require("pyarrow", feature)
    if values.ndim == 1:
        return pa.array(values)
    flat = pa.array(np.ascontiguousarray(values).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, values.shape[1])


def fits_png(frames: NDArray[Any]) -> bool:
    """Whether PNG keeps every value of the frames.

    :param frames: shape ``(n, H, W, C)``
    """
    return frames.dtype == np.uint8 and frames.shape[3] in _PNG_CHANNELS


def png_frames(frames: NDArray[Any], feature: str) -> list[bytes]:
    """Encode each frame as a PNG, losslessly.

    :param frames: shape ``(n, H, W, C)``
    :param feature: name of the export, for errors
    """
    channels = frames.shape[3]
    if not fits_png(frames):
        allowed = f"a PNG holds 1 to 4 channels of uint8, these frames have {channels} of {frames.dtype}"
        raise ParameterError(feature, "frames", "png", allowed, "Use frames='raw'.")
    images = require("PIL.Image", feature)
    return [_png(images.fromarray(image)) for image in (frames[..., 0] if channels == 1 else frames)]


def _png(image: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, format="PNG", compress_level=3)
    return file.getvalue()
