"""``open_dataset``: find out the format of a source."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from sb3_extra_buffers.checkpoints.manifest import MANIFEST_NAME
from sb3_extra_buffers.datasets.arrays import Hdf5Table, NpzTable
from sb3_extra_buffers.datasets.arrow import HuggingFaceTable, ParquetTable, load_hugging_face, open_hugging_face
from sb3_extra_buffers.datasets.lerobot import INFO, open_lerobot
from sb3_extra_buffers.datasets.minari import MinariDataset, load_minari, open_minari_folder
from sb3_extra_buffers.datasets.protocol import Dataset
from sb3_extra_buffers.datasets.replay import BufferDataset, RecordingTable, is_buffer, open_checkpoint, open_pickle
from sb3_extra_buffers.datasets.table import Columns, MissingFinal, Table, TableDataset
from sb3_extra_buffers.errors import FileContentError, FileMissingError, ParameterError
from sb3_extra_buffers.recording.saved_recording import load

_MINARI_ID = re.compile(r"[\w./-]+-v\d+")
_FORMATS = (
    "a folder of Minari, Hugging Face, LeRobot, Parquet files or a checkpoint, or a file .parquet, .npz, .hdf5, .h5, "
    ".pkl or a recording"
)


def open_dataset(
    source: Any,
    *,
    columns: Columns | None = None,
    terminal_frames: bool | None = None,
    missing_final: MissingFinal = "error",
    trust_pickle: bool = False,
) -> Dataset:
    """Open a data set. Only the ends of episodes are read; Minari decodes whole episodes for this.

    :param source: a path; ``"minari:ID"`` or an id of Minari; ``"hf:NAME"`` or ``"hf:NAME:SPLIT"`` of the Hugging Face
        hub; or a replay buffer, a recording, or an open data set of Minari, Hugging Face or this package
    :param columns: for tables, the column of each role whose column has another name, such as
        ``{"observation.image": "pixels"}``; ``{"reward": None}`` for rewards of 0
    :param terminal_frames: for recordings and tables, whether the last row of an episode only holds its final
        observation. Recordings need it.
    :param missing_final: ``"drop"`` leaves out the last transition of truncated episodes whose final observation is
        missing; otherwise they are an error
    :param trust_pickle: must be true for a pickle: reading it runs the code that it names
    """
    if isinstance(source, Dataset):
        return source
    if not isinstance(source, (str, os.PathLike)):
        name, table = type(source).__name__, _table_of(source)
        if table is None and is_buffer(source):
            return BufferDataset(name, source)
        if table is None and hasattr(source, "storage") and hasattr(source, "episode_indices"):
            return MinariDataset(name, source)
        if table is None:
            allowed = "it must be a path, an id, a replay buffer, a recording, or a data set of Minari or Hugging Face"
            raise ParameterError("open_dataset", "source", name, allowed)
    else:
        name, path = os.fspath(source), Path(source)
        if name.startswith("minari:"):
            return load_minari(name.partition(":")[2])
        if name.startswith("hf:"):
            table = load_hugging_face(name.partition(":")[2])
        elif not path.exists():
            if isinstance(source, str) and _MINARI_ID.fullmatch(name):
                return load_minari(name)
            raise FileMissingError(name, "Check the path. Ids are written minari:ID or hf:NAME.")
        else:
            found = _open_path(path, columns, trust_pickle)
            if isinstance(found, Dataset):
                return found
            table = found
    if isinstance(table, RecordingTable) and terminal_frames is None:
        hint = "It is True for recordings of RecordEnv, VecRecord and RecordCallback."
        raise ParameterError("open_dataset", "terminal_frames", None, "recordings need True or False", hint)
    return TableDataset(name, table, columns, bool(terminal_frames), missing_final)


def _table_of(source: Any) -> Table | None:
    if hasattr(source, "frame_shape") and hasattr(source, "without_frames"):
        return RecordingTable(source)
    if hasattr(source, "column_names") and hasattr(source, "with_format"):
        return HuggingFaceTable(source)
    return None


def _open_path(path: Path, columns: Columns | None, trust_pickle: bool) -> Dataset | Table:
    if path.is_dir():
        return _open_folder(path, columns)
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        return ParquetTable([path])
    if suffix == ".npz":
        return NpzTable(path)
    if suffix in (".hdf5", ".h5"):
        return Hdf5Table(path)
    if suffix in (".pkl", ".pickle"):
        return open_pickle(path, trust_pickle)
    return RecordingTable(load(path))


def _open_folder(path: Path, columns: Columns | None) -> Dataset | Table:
    if (path / MANIFEST_NAME).exists():
        return open_checkpoint(path)
    if (path / INFO).exists():
        return open_lerobot(path, columns)
    if (path / "dataset_info.json").exists() or (path / "dataset_dict.json").exists():
        return open_hugging_face(path)
    if (path / "data" / "metadata.json").exists() or (path / "metadata.json").exists():
        return open_minari_folder(path)
    files = sorted(path.glob("*.parquet"))
    if files:
        return ParquetTable(files)
    raise FileContentError(str(path), _FORMATS, "a folder of another kind")
