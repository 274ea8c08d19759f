"""``write_dataset``: a recording as a Hugging Face dataset."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.progress import Advance, progress_bar
from sb3_extra_buffers.recording.exports.batches import batches, select_steps
from sb3_extra_buffers.recording.exports.extras import require
from sb3_extra_buffers.recording.exports.files import AnyPath, new_folder
from sb3_extra_buffers.recording.exports.parquet import (
    METADATA_KEY,
    arrow_array,
    fits_png,
    png_frames,
    step_columns,
    table_metadata,
)
from sb3_extra_buffers.recording.protocol import Clip, Recording

_NAME = "to_dataset"


def write_dataset(recording: Recording, path: AnyPath, *, steps: range | None = None, progress: bool = True) -> Any:
    """
    Write a folder for ``datasets.load_from_disk``, losslessly, and open it. Needs the extra ``datasets``.

    The columns are those of :func:`~sb3_extra_buffers.recording.exports.write_parquet`. Frames of 1 to 4 channels of
    ``uint8`` are images (``datasets.Image``, stored as PNG), others are arrays (``datasets.Array3D``). The description
    of the dataset is JSON with ``action_shape``, ``frame_shape`` and ``frame_dtype`` under ``METADATA_KEY``.

    :param recording: the recording
    :param path: the folder; it must not exist
    :param steps: consecutive steps, such as one of ``recording.episodes``; ``None`` for all
    :param progress: whether to show a progress bar on a terminal, if rich or tqdm is installed
    """
    target = Path(path)
    chosen = select_steps(recording, steps, _NAME)
    datasets = require("datasets", _NAME)
    require("PIL", _NAME)
    with new_folder(target, _NAME) as draft:
        stream = draft / "stream.arrow"
        with progress_bar(_NAME, len(chosen), progress) as advance:
            _write_stream(recording, chosen, stream, advance)
        with hide_progress_bars(datasets):
            dataset = datasets.Dataset.from_file(str(stream))
            # No other field is saved with a dataset and loaded again.
            metadata = table_metadata(recording.read(chosen.start, chosen.start + 1))
            dataset.info.description = json.dumps({METADATA_KEY: metadata})
            dataset.save_to_disk(str(draft / "dataset"))
        stream.unlink()
        for file in (draft / "dataset").iterdir():
            file.rename(draft / file.name)
        (draft / "dataset").rmdir()
    return datasets.load_from_disk(str(target))


def _write_stream(recording: Recording, steps: range, path: Path, advance: Advance) -> None:
    pa = require("pyarrow", _NAME)
    episodes = recording.episodes
    writer: Any = None
    with pa.OSFile(str(path), "wb") as file:
        for numbers, clip in batches(recording, steps):
            columns = step_columns(clip, numbers, episodes)
            schema = _features(clip, columns).arrow_schema
            arrays = [_column(values, schema.field(name).type) for name, values in columns.items()]
            if clip.frames is not None:
                arrays.append(_frames(clip.frames, schema.field("frame").type))
            writer = writer or pa.ipc.new_stream(file, schema)
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
            advance(len(numbers))
        writer.close()


def _features(clip: Clip, columns: dict[str, NDArray[Any]]) -> Any:
    datasets = require("datasets", _NAME)
    kinds = {}
    for name, values in columns.items():
        # numpy's name of the dtype: datasets does not know Arrow's "halffloat".
        value = datasets.Value(values.dtype.name)
        kinds[name] = value if values.ndim == 1 else datasets.Sequence(value, length=values.shape[1])
    if clip.frames is not None:
        shape, dtype = clip.frames.shape[1:], str(clip.frames.dtype)
        kinds["frame"] = datasets.Image() if fits_png(clip.frames) else datasets.Array3D(shape, dtype)
    return datasets.Features(kinds)


def _column(values: NDArray[Any], kind: Any) -> Any:
    found = arrow_array(values, _NAME)
    return found if found.type == kind else found.cast(kind)


def _frames(frames: NDArray[Any], kind: Any) -> Any:
    pa = require("pyarrow", _NAME)
    if fits_png(frames):
        images = pa.array(png_frames(frames, _NAME), pa.binary())
        return pa.StructArray.from_arrays([images, pa.nulls(len(images), pa.string())], ["bytes", "path"])
    nested = pa.array(np.ascontiguousarray(frames).reshape(-1))
    for length in frames.shape[:0:-1]:
        offsets = np.arange(0, len(nested) + 1, length, dtype=np.int32)
        nested = pa.ListArray.from_arrays(offsets, nested)
    return pa.ExtensionArray.from_storage(kind, nested)


@contextmanager
def hide_progress_bars(datasets: Any) -> Iterator[None]:
    """Hide the progress bars of ``datasets``: this export shows its own."""
    were_shown = not datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if were_shown:
            datasets.enable_progress_bars()
