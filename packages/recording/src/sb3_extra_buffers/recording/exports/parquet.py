"""``write_parquet``: a recording as a table that every data tool reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.progress import progress_bar
from sb3_extra_buffers.recording.clip import Clip
from sb3_extra_buffers.recording.exports.batches import batches, chosen_steps
from sb3_extra_buffers.recording.exports.extras import require
from sb3_extra_buffers.recording.exports.files import AnyPath, new_file
from sb3_extra_buffers.recording.exports.tables import (
    METADATA_KEY,
    about,
    arrow_array,
    columns_of,
    png_frames,
    raw_frames,
)
from sb3_extra_buffers.recording.recording import Recording

_NAME = "to_parquet"


def write_parquet(
    recording: Recording,
    path: AnyPath,
    *,
    steps: range | None = None,
    frames: Literal["raw", "png"] = "raw",
    progress: bool = True,
) -> Path:
    """
    Write a Parquet file with a row for each step, losslessly. Needs the extra ``parquet``.

    Columns: ``episode``, ``step`` (in its episode), ``action`` (a number or a list), ``reward``, ``done``,
    ``feature_0`` and so on if there are features, and ``frame`` if there are frames. What is needed to make arrays of
    the bytes of a frame stands in the metadata of the file, under ``METADATA_KEY``, as JSON: ``frames``,
    ``frame_shape``, ``frame_dtype``, ``action_shape``.

    :param recording: what to write
    :param path: the file
    :param steps: consecutive steps, such as one of ``recording.episodes``; ``None`` for all
    :param frames: ``"raw"`` for the bytes of the arrays; ``"png"`` for images that other tools show, if they are of 1
        to 4 channels of ``uint8``
    :param progress: whether to show a bar on a terminal, if rich or tqdm is installed
    """
    target = Path(path)
    chosen = chosen_steps(recording, steps, _NAME)
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
                    # A dictionary of frames would hold each of them once more.
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
    columns = {name: arrow_array(values, _NAME) for name, values in columns_of(clip, steps, episodes).items()}
    said = about(clip)
    if clip.frames is not None:
        is_raw = encoding == "raw"
        columns["frame"] = (
            raw_frames(clip.frames, _NAME) if is_raw else pa.array(png_frames(clip.frames, _NAME), pa.binary())
        )
        said["frames"] = encoding
    return pa.table(columns).replace_schema_metadata({METADATA_KEY: json.dumps(said)})
