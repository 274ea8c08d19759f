"""``write_dataset``: a recording as a dataset of Hugging Face."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.progress import Advance, progress_bar
from sb3_extra_buffers.recording.clip import Clip
from sb3_extra_buffers.recording.exports.batches import batches, chosen_steps
from sb3_extra_buffers.recording.exports.extras import require
from sb3_extra_buffers.recording.exports.files import AnyPath, new_folder
from sb3_extra_buffers.recording.exports.tables import (
    METADATA_KEY,
    about,
    arrow_array,
    can_be_png,
    columns_of,
    png_frames,
)
from sb3_extra_buffers.recording.recording import Recording

_NAME = "to_dataset"


def write_dataset(recording: Recording, path: AnyPath, *, steps: range | None = None, progress: bool = True) -> Any:
    """
    Write a folder for ``datasets.load_from_disk``, losslessly, and open it. Needs the extra ``datasets``.

    The columns are those of :func:`~sb3_extra_buffers.recording.exports.write_parquet`. Frames of 1 to 4 channels of
    ``uint8`` are images (``datasets.Image``, kept as PNG), others are arrays (``datasets.Array3D``). ``action_shape``,
    ``frame_shape`` and ``frame_dtype`` stand in the description of the dataset, under ``METADATA_KEY``, as JSON.

    :param recording: what to write
    :param path: the folder, which is not there yet
    :param steps: consecutive steps, such as one of ``recording.episodes``; ``None`` for all
    :param progress: whether to show a bar on a terminal, if rich or tqdm is installed
    """
    target = Path(path)
    chosen = chosen_steps(recording, steps, _NAME)
    datasets = require("datasets", _NAME)
    require("PIL", _NAME)
    with new_folder(target, _NAME) as draft:
        stream = draft / "stream.arrow"
        with progress_bar(_NAME, len(chosen), progress) as advance:
            _write_stream(recording, chosen, stream, advance)
        with _without_bars(datasets):
            made = datasets.Dataset.from_file(str(stream))
            # The only place for it that is saved with a dataset and opened again.
            made.info.description = json.dumps({METADATA_KEY: about(recording.read(chosen.start, chosen.start + 1))})
            made.save_to_disk(str(draft / "dataset"))
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
            columns = columns_of(clip, numbers, episodes)
            schema = _features(clip, columns).arrow_schema
            arrays = [_column(values, schema.field(name).type) for name, values in columns.items()]
            if clip.frames is not None:
                arrays.append(_frames(clip.frames, schema.field("frame").type))
            batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
            writer = writer or pa.ipc.new_stream(file, schema)
            writer.write_batch(batch)
            advance(len(numbers))
        writer.close()


def _features(clip: Clip, columns: dict[str, NDArray[Any]]) -> Any:
    datasets = require("datasets", _NAME)
    kinds = {}
    for name, values in columns.items():
        # By the name that numpy has for it: Arrow's «halffloat» is unknown to the library.
        value = datasets.Value(values.dtype.name)
        kinds[name] = value if values.ndim == 1 else datasets.Sequence(value, length=values.shape[1])
    if clip.frames is not None:
        height, width, channels = clip.frames.shape[1:]
        dtype = clip.frames.dtype
        is_image = can_be_png((height, width, channels), dtype)
        kinds["frame"] = datasets.Image() if is_image else datasets.Array3D((height, width, channels), str(dtype))
    return datasets.Features(kinds)


def _column(values: NDArray[Any], kind: Any) -> Any:
    found = arrow_array(values, _NAME)
    return found if found.type == kind else found.cast(kind)


def _frames(frames: NDArray[Any], kind: Any) -> Any:
    pa = require("pyarrow", _NAME)
    if can_be_png((frames.shape[1], frames.shape[2], frames.shape[3]), frames.dtype):
        images = pa.array(png_frames(frames, _NAME), pa.binary())
        return pa.StructArray.from_arrays([images, pa.nulls(len(images), pa.string())], ["bytes", "path"])
    nested = pa.array(np.ascontiguousarray(frames).reshape(-1))
    for length in frames.shape[:0:-1]:
        offsets = np.arange(0, len(nested) + 1, length, dtype=np.int32)
        nested = pa.ListArray.from_arrays(offsets, nested)
    return pa.ExtensionArray.from_storage(kind, nested)


@contextmanager
def _without_bars(datasets: Any) -> Iterator[None]:
    """Our own bar is enough."""
    were_shown = not datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if were_shown:
            datasets.enable_progress_bars()
