"""Data sets of Arrow columns: Parquet files and Hugging Face data sets, read and written."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.datasets.protocol import NO_KEY, Dataset, reading
from sb3_extra_buffers.datasets.rows import Rows, export_rows
from sb3_extra_buffers.datasets.table import Sparse, Table
from sb3_extra_buffers.errors import FileContentError
from sb3_extra_buffers.progress import progress_bar
from sb3_extra_buffers.recording.exports.extras import require
from sb3_extra_buffers.recording.exports.files import AnyPath, new_file, new_folder
from sb3_extra_buffers.recording.exports.hugging_face import hide_progress_bars
from sb3_extra_buffers.recording.exports.parquet import METADATA_KEY as RECORDING_KEY
from sb3_extra_buffers.recording.exports.parquet import arrow_array

#: Key of the metadata of a table: JSON with the spaces, and the form of each column of bytes.
METADATA_KEY = "sb3_extra_buffers.dataset"
PARQUET, HUGGING_FACE = "datasets of Parquet files", "datasets of Hugging Face"


class ParquetTable(Table):
    """The rows of one or several Parquet files, one after the other. One row group is decoded at a time.

    :param paths: the files
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = list(paths)
        pq = require("pyarrow.parquet", PARQUET)
        with reading(str(self._paths[0]), "a Parquet file"):
            self._files = [pq.ParquetFile(path) for path in self._paths]
        schema = self._files[0].schema_arrow
        self.names = schema.names
        self.about, self._forms = metadata_of({**(schema.metadata or {})})
        #: The file and the number of each row group, and the end of its rows.
        self._groups = [(file, group) for file in self._files for group in range(file.num_row_groups)]
        counts = [file.metadata.row_group(group).num_rows for file, group in self._groups]
        self._stops = np.cumsum(np.array(counts, np.int64))
        self.rows = int(self._stops[-1]) if counts else 0
        self._decoded: tuple[Any, dict[str, NDArray[Any] | Sparse]] = (None, {})

    def read(self, names: Sequence[str], start: int, stop: int) -> dict[str, NDArray[Any] | Sparse]:
        """Read consecutive rows of some columns."""
        pieces = []
        for group in range(int(np.searchsorted(self._stops, start, "right")), len(self._groups)):
            begin = int(self._stops[group - 1]) if group else 0
            if begin >= stop:
                break
            first, last = max(start - begin, 0), min(stop, int(self._stops[group])) - begin
            pieces.append({name: _rows(one, first, last, begin) for name, one in self._group(group, names).items()})
        return pieces[0] if len(pieces) == 1 else {name: _join([one[name] for one in pieces]) for name in names}

    def _group(self, group: int, names: Sequence[str]) -> dict[str, NDArray[Any] | Sparse]:
        key = group, tuple(names)
        if self._decoded[0] != key:
            file, number = self._groups[group]
            table = file.read_row_group(number, columns=list(names), use_threads=False)
            self._decoded = key, {name: to_numpy(table[name], self._forms.get(name), _is_next(name)) for name in names}
        return self._decoded[1]

    def clone(self) -> Table:
        """Return a table that decodes for itself."""
        return ParquetTable(self._paths)

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()


class HuggingFaceTable(Table):
    """The rows of a data set of Hugging Face, which is mapped into memory and not loaded.

    :param dataset: a ``datasets.Dataset``
    """

    def __init__(self, dataset: Any) -> None:
        self._dataset, self._arrow = dataset, dataset.with_format("arrow")
        self.names, self.rows = dataset.column_names, len(dataset)
        try:
            said = json.loads(dataset.info.description or "{}")
        except ValueError:
            said = {}
        said = said if isinstance(said, dict) else {}
        self.about, self._forms = metadata_of({key: json.dumps(value) for key, value in said.items()})

    def read(self, names: Sequence[str], start: int, stop: int) -> dict[str, NDArray[Any] | Sparse]:
        """Read consecutive rows of some columns."""
        table = self._arrow.select_columns(list(names))[start:stop]
        return {
            name: _rows(to_numpy(table[name], self._forms.get(name), _is_next(name)), 0, stop - start, start)
            for name in names
        }

    def clone(self) -> Table:
        """Return this table: any rows can be read."""
        return self

    def close(self) -> None:
        """Do nothing: the library keeps the file open as long as it is used."""


def metadata_of(found: Mapping[Any, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the metadata of an export, and the dtype and shape of each column of bytes or lists.

    :param found: metadata of a table
    """
    texts = {(key.decode() if isinstance(key, bytes) else key): value for key, value in found.items()}
    if METADATA_KEY in texts:
        about = json.loads(texts[METADATA_KEY])
        return about, dict(about["forms"])
    if RECORDING_KEY not in texts:
        return {}, {}
    said = json.loads(texts[RECORDING_KEY])
    forms: dict[str, Any] = {"action": [None, said["action_shape"]]}
    if said.get("frames", "raw") == "raw" and "frame_dtype" in said:
        forms["frame"] = [said["frame_dtype"], said["frame_shape"]]
    elif "frame_shape" in said:
        forms["frame"] = [None, said["frame_shape"]]
    return {}, forms


def to_numpy(column: Any, form: Sequence[Any] | None, sparse: bool = False) -> NDArray[Any] | Sparse:
    """Convert a column of numbers, lists, bytes or images.

    :param column: a chunked array of Arrow
    :param sparse: whether nulls stand for rows without a value; otherwise they are an error
    :param form: dtype and shape of a row, from the metadata; ``None`` if there is none
    """
    pa = require("pyarrow", PARQUET)
    array = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks == 1 else pa.concat_arrays(array.chunks)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    dtype, shape = form or (None, None)
    if array.null_count == len(array) and len(array) and shape is None:
        raise ValueError("a column has no values")
    if sparse:
        valid = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
        return Sparse(valid, _dense(array.drop_null(), dtype, shape))
    return _dense(array, dtype, shape)


def _dense(array: Any, dtype: str | None, shape: Sequence[int] | None) -> NDArray[Any]:
    pa = require("pyarrow", PARQUET)
    kind, count = array.type, len(array)
    if pa.types.is_struct(kind):  # an image of Hugging Face or LeRobot
        images = np.stack([_image(data) for data in array.field("bytes").to_pylist()])
        return images.reshape(count, *shape) if shape is not None else images
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        if dtype is None:
            images = np.stack([_image(data) for data in array.to_pylist()])
            return images.reshape(count, *shape) if shape is not None else images
        joined = b"".join(array.to_pylist())
        return np.frombuffer(bytearray(joined), np.dtype(dtype)).reshape(count, *(shape or ()))
    lengths = []
    while pa.types.is_list(array.type) or pa.types.is_large_list(array.type) or pa.types.is_fixed_size_list(array.type):
        length, left = divmod(len(array.flatten()), max(1, len(array)))
        if left:
            raise ValueError("a column has lists of several lengths")
        lengths.append(length)
        array = array.flatten()
    if pa.types.is_string(array.type) or array.null_count:
        raise ValueError(f"a column has values of {array.type}, which are not all numbers")
    values: NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return np.array(values).reshape(count, *(lengths if shape is None else shape))


def _image(data: bytes | None) -> NDArray[Any]:
    if not data:
        raise ValueError("an image is not in the table but in another file")
    image = np.asarray(require("PIL.Image", PARQUET).open(io.BytesIO(data)))
    return image[..., np.newaxis] if image.ndim == 2 else image


def _is_next(name: str) -> bool:
    """Whether a column may have nulls, for next observations that are the observation of the following row."""
    return name.startswith("next_obs")


def _rows(column: NDArray[Any] | Sparse, first: int, last: int, offset: int) -> NDArray[Any] | Sparse:
    """Rows of a piece; those of a sparse column get their numbers in the whole table."""
    if not isinstance(column, Sparse):
        return column[first:last]
    inside = (column.rows >= first) & (column.rows < last)
    return Sparse(column.rows[inside] + offset, column.values[inside])


def _join(pieces: Sequence[NDArray[Any] | Sparse]) -> NDArray[Any] | Sparse:
    if not any(isinstance(one, Sparse) for one in pieces):
        return np.concatenate([np.asarray(one) for one in pieces])
    return Sparse(*(np.concatenate(parts) for parts in zip(*pieces)))


def _columns(rows: Rows) -> dict[str, tuple[NDArray[Any], NDArray[np.bool_] | None]]:
    """All columns of an export, and for next observations whether each row has one."""
    block = rows.block
    columns: dict[str, tuple[NDArray[Any], NDArray[np.bool_] | None]] = {
        "episode": (rows.episodes, None),
        "step": (rows.steps, None),
        "action": (block.actions, None),
        "reward": (block.rewards, None),
        "terminated": (block.terminated, None),
        "truncated": (block.truncated, None),
    }
    for role, parts, own in (
        ("observation", block.observations, None),
        ("next_observation", block.next_observations, rows.own),
    ):
        columns |= {_name(role, key): (part, own) for key, part in parts.items()}
    return columns


def _name(role: str, key: str) -> str:
    return role if key == NO_KEY else f"{role}.{key}"


def _is_bytes(values: NDArray[Any]) -> bool:
    """Whether a column is stored as bytes: images and other arrays of several dimensions."""
    return values.ndim > 2


def _arrow_column(values: NDArray[Any], own: NDArray[np.bool_] | None) -> Any:
    """A column of numbers, of lists, or of the bytes of little-endian arrays; null where there is no own value."""
    pa = require("pyarrow", PARQUET)
    if own is None and values.ndim == 1:
        return arrow_array(values, PARQUET)
    kept = np.ascontiguousarray(values if own is None else values[own])
    mask = None if own is None else pa.array(~own)
    lengths = np.ones(len(values), np.int64) if own is None else own.astype(np.int64)
    offsets = np.append(0, np.cumsum(lengths))
    if _is_bytes(values):
        kept = kept.astype(kept.dtype.newbyteorder("<"), copy=False)
        row = int(np.prod(values.shape[1:])) * values.dtype.itemsize
        buffers = [pa.py_buffer((offsets * row).astype(np.int32)), pa.py_buffer(kept.tobytes())]
        valid = None if own is None else pa.array(own).buffers()[1]
        return pa.Array.from_buffers(pa.binary(), len(values), [valid, *buffers])
    width = int(np.prod(values.shape[1:]))
    flat = pa.array(kept.reshape(-1))
    return pa.ListArray.from_arrays(pa.array((offsets * width).astype(np.int32)), flat, mask=mask)


def _about(about: Mapping[str, Any], rows: Rows) -> dict[str, Any]:
    forms: dict[str, Any] = {}
    for name, (values, own) in _columns(rows).items():
        if values.ndim > 1 or own is not None:
            little = np.dtype(values.dtype.newbyteorder("<")).str
            forms[name] = [little if _is_bytes(values) else None, values.shape[1:]]
    return {**about, "forms": forms}


def write_parquet(dataset: Dataset, path: AnyPath, about: Mapping[str, Any], progress: bool) -> Path:
    """Write a Parquet file with one row per transition.

    :param dataset: the data set
    :param path: the file
    :param about: metadata
    :param progress: whether to show a progress bar
    """
    pa, pq = require("pyarrow", PARQUET), require("pyarrow.parquet", PARQUET)
    target, writer = Path(path), None
    with new_file(target, "export_dataset") as file, progress_bar("export", len(dataset), progress) as advance:
        try:
            for rows in export_rows(dataset):
                table = pa.table({name: _arrow_column(*column) for name, column in _columns(rows).items()})
                if writer is None:
                    metadata = {METADATA_KEY: json.dumps(_about(about, rows))}
                    schema = table.schema.with_metadata(metadata)
                    # A dictionary of observations would store each of them twice.
                    small = [name for name in table.column_names if "observation" not in name]
                    writer = pq.ParquetWriter(file, schema, compression="zstd", use_dictionary=small)
                writer.write_table(table.cast(writer.schema))
                advance(len(rows.block))
        finally:
            if writer is not None:
                writer.close()
    return target


def write_hugging_face(dataset: Dataset, path: AnyPath, about: Mapping[str, Any], progress: bool) -> Path:
    """Write a folder for ``datasets.load_from_disk`` with the columns of the Parquet file.

    :param dataset: the data set
    :param path: the folder; it must not exist
    :param about: metadata
    :param progress: whether to show a progress bar
    """
    datasets, pa = require("datasets", HUGGING_FACE), require("pyarrow", HUGGING_FACE)
    writer, described = None, ""
    with new_folder(path, "export_dataset") as draft:
        stream = draft / "stream.arrow"
        with pa.OSFile(str(stream), "wb") as file, progress_bar("export", len(dataset), progress) as advance:
            for rows in export_rows(dataset):
                columns = {name: _arrow_column(*column) for name, column in _columns(rows).items()}
                if writer is None:
                    described = json.dumps({METADATA_KEY: _about(about, rows)})
                    features = {name: _feature(datasets, name, _columns(rows)[name][0]) for name in columns}
                    schema = datasets.Features(features).arrow_schema
                    writer = pa.ipc.new_stream(file, schema)
                writer.write_table(pa.table(columns).cast(schema))
                advance(len(rows.block))
            if writer is not None:
                writer.close()
        with hide_progress_bars(datasets):
            made = datasets.Dataset.from_file(str(stream))
            made.info.description = described  # no other field is loaded again
            made.save_to_disk(str(draft / "dataset"))
        del made
        stream.unlink()
        for one in (draft / "dataset").iterdir():
            one.rename(draft / one.name)
        (draft / "dataset").rmdir()
    return Path(path)


def _feature(datasets: Any, name: str, values: NDArray[Any]) -> Any:
    if _is_bytes(values):
        return datasets.Value("binary")
    value = datasets.Value(values.dtype.name)
    return value if values.ndim == 1 and "observation" not in name else datasets.Sequence(value)


def open_hugging_face(path: Path) -> HuggingFaceTable:
    """Open a folder of ``save_to_disk``.

    :param path: the folder
    """
    datasets = require("datasets", HUGGING_FACE)
    with reading(str(path), "a data set of Hugging Face"):
        return HuggingFaceTable(_one_split(str(path), datasets.load_from_disk(str(path))))


def load_hugging_face(name: str) -> HuggingFaceTable:
    """Open a data set of the Hugging Face hub; it is downloaded if needed.

    :param name: id of the data set, and optionally the split after a colon
    """
    datasets = require("datasets", HUGGING_FACE)
    repository, _, split = name.partition(":")
    with reading(f"hf:{name}", "a data set of the Hugging Face hub"):
        return HuggingFaceTable(_one_split(f"hf:{name}", datasets.load_dataset(repository, split=split or None)))


def _one_split(source: str, found: Any) -> Any:
    if not hasattr(found, "keys"):
        return found
    if len(found) != 1:
        names = ", ".join(found)
        raise FileContentError(source, "one split", f"the splits {names}", "Open one of them, such as hf:NAME:SPLIT.")
    return next(iter(found.values()))
