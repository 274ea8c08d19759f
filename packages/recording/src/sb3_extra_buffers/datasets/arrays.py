"""Data sets of named arrays: ``.npz`` files, read and written, and HDF5 files in the form of D4RL, read."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from sb3_extra_buffers.datasets.protocol import NO_KEY, Dataset, reading
from sb3_extra_buffers.datasets.rows import export_rows
from sb3_extra_buffers.datasets.table import Sparse, Table
from sb3_extra_buffers.errors import FileContentError
from sb3_extra_buffers.progress import progress_bar
from sb3_extra_buffers.recording.exports.extras import require
from sb3_extra_buffers.recording.exports.files import AnyPath, new_file

#: Arrays of an export: the metadata, and the rows that have an own next observation.
_ABOUT, _NEXT_ROWS = "about", "next_rows"
_NEXT = "next_observations"


class _Member:
    """One array of a ``.npz`` file, read forwards without loading it."""

    def __init__(self, path: Path, archive: zipfile.ZipFile, name: str) -> None:
        self._archive, self._name = archive, name
        self._file: Any = None
        self._begin()
        if self._fortran:
            raise FileContentError(
                str(path), f"{name} in C order", "Fortran order", "Save it with np.ascontiguousarray."
            )

    def _begin(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = self._archive.open(f"{self._name}.npy")
        version = npy.read_magic(self._file)
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        self.shape, self._fortran, self.dtype = read_header(self._file)
        if self.dtype.hasobject:
            raise ValueError(f"{self._name} holds Python objects")
        self._row, self._last = 0, np.empty((0, *self.shape[1:]), self.dtype)

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Read rows. Those of the last call are kept, because calls overlap by one row."""
        kept = self._row - len(self._last)
        if start < kept:
            self._begin()
            kept = 0
        if start > self._row:
            self._skip(start - self._row)
            kept = self._row
        parts = [self._last[start - kept : stop - kept]] if start < self._row else []
        if stop > self._row:
            parts.append(self._take(stop - self._row))
        found = parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else self._last[:0]
        if stop == self._row:
            self._last = found
        return found

    def _skip(self, count: int) -> None:
        while count:
            some = min(count, max(1, (1 << 22) // max(1, self.dtype.itemsize * int(np.prod(self.shape[1:])))))
            self._last = self._take(some)[:0]
            count -= some

    def _take(self, count: int) -> NDArray[Any]:
        shape = (count, *self.shape[1:])
        nbytes = int(np.prod(shape)) * self.dtype.itemsize
        data = self._file.read(nbytes)
        if len(data) != nbytes:
            raise EOFError(f"{self._name} ends early")
        self._row += count
        if self._row == self.shape[0]:
            self._file.read(1)  # the checksum is compared at the end
        return np.frombuffer(bytearray(data), self.dtype).reshape(shape)

    def close(self) -> None:
        self._file.close()


class NpzTable(Table):
    """The arrays of a ``.npz`` file.

    :param path: the file
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with reading(str(path), "a .npz file of numpy"):
            self._archive = zipfile.ZipFile(path)
            self._members: dict[str, _Member] = {}
            names = [name[: -len(".npy")] for name in self._archive.namelist() if name.endswith(".npy")]
            if not names:
                raise FileContentError(str(path), "a .npz file of numpy", "no arrays")
            if _ABOUT in names:
                text = npy.read_array(self._archive.open(f"{_ABOUT}.npy"), allow_pickle=False)
                self.about = json.loads(str(text))
            self._sparse: NDArray[np.int64] | None = None
            if _NEXT_ROWS in names:
                self._sparse = npy.read_array(self._archive.open(f"{_NEXT_ROWS}.npy"), allow_pickle=False)
            members = {name: self._member(name) for name in names if name not in (_ABOUT, _NEXT_ROWS)}
            self.rows = _equal_rows(
                str(path), {name: one.shape for name, one in members.items() if not self._is_sparse(name)}
            )
            self.names = [name for name in members if len(members[name].shape)]

    def _is_sparse(self, name: str) -> bool:
        return self._sparse is not None and name.partition(".")[0] == _NEXT

    def _member(self, name: str) -> _Member:
        if name not in self._members:
            self._members[name] = _Member(self._path, self._archive, name)
        return self._members[name]

    def read(self, names: Sequence[str], start: int, stop: int) -> dict[str, NDArray[Any] | Sparse]:
        """Read consecutive rows of some arrays."""
        found: dict[str, NDArray[Any] | Sparse] = {}
        for name in names:
            if self._is_sparse(name):
                assert self._sparse is not None
                first, last = np.searchsorted(self._sparse, [start, stop]).tolist()
                found[name] = Sparse(self._sparse[first:last], self._member(name).read(first, last))
            else:
                found[name] = self._member(name).read(start, stop)
        return found

    def clone(self) -> Table:
        """Return a table that reads for itself."""
        return NpzTable(self._path)

    def close(self) -> None:
        """Close the file."""
        for member in self._members.values():
            member.close()
        self._archive.close()


class Hdf5Table(Table):
    """The arrays of an HDF5 file, those in groups under ``group/name``. Other groups and single values are ignored.

    :param path: the file
    """

    def __init__(self, path: Path) -> None:
        h5py = require("h5py", "datasets of HDF5 files")
        self._path = path
        with reading(str(path), "an HDF5 file"):
            self._file = h5py.File(path, "r")
            arrays: dict[str, Any] = {}
            self._file.visititems(lambda name, item: arrays.__setitem__(name, item) if hasattr(item, "shape") else None)
            # Files of D4RL describe the policy in groups whose arrays have other lengths.
            arrays = {
                name: one for name, one in arrays.items() if one.shape and not name.startswith(("infos/", "metadata/"))
            }
            self._arrays: Mapping[str, Any] = arrays
            self.rows = _equal_rows(str(path), {name: one.shape for name, one in arrays.items()})
            self.names = list(arrays)

    def read(self, names: Sequence[str], start: int, stop: int) -> dict[str, NDArray[Any] | Sparse]:
        """Read consecutive rows of some arrays."""
        return {name: self._arrays[name][start:stop] for name in names}

    def clone(self) -> Table:
        """Return this table: any rows can be read."""
        return self

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _equal_rows(path: str, shapes: Mapping[str, tuple[int, ...]]) -> int:
    rows = {name: shape[0] for name, shape in shapes.items() if shape}
    if len(set(rows.values())) > 1:
        longest, shortest = max(rows, key=lambda name: rows[name]), min(rows, key=lambda name: rows[name])
        found = f"{rows[longest]} of {longest} and {rows[shortest]} of {shortest}"
        raise FileContentError(path, "arrays with one row per step", found, "It may have been written incompletely.")
    return next(iter(rows.values()), 0)


def write_npz(dataset: Dataset, path: AnyPath, about: Mapping[str, Any], progress: bool) -> Path:
    """Write a data set as arrays with D4RL's names. A next observation that is the following one is not repeated.

    :param dataset: the data set
    :param path: the file
    :param about: metadata
    :param progress: whether to show a progress bar
    """
    target, count = Path(path), len(dataset)
    keys = list(next(dataset.blocks(1)).observations)
    names = {key: f".{key}" if key != NO_KEY else "" for key in keys}
    total = (2 * len(keys) + 1) * count
    with (
        new_file(target, "export_dataset") as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
        progress_bar("export_dataset", total, progress) as advance,
    ):
        names_small = ("actions", "rewards", "terminals", "timeouts", "episode")
        small: dict[str, list[NDArray[Any]]] = {name: [] for name in names_small}
        has_own: list[NDArray[np.bool_]] = []
        for block, episodes, _, is_own in export_rows(dataset):
            values = block.actions, block.rewards, block.terminated, block.truncated, episodes
            for name, array in zip(small, values):
                small[name].append(array)
            has_own.append(is_own)
            advance(len(block))
        own = np.flatnonzero(np.concatenate(has_own))
        # One array after the other: a zip file is written without gaps.
        for key in keys:
            for is_next in (False, True):
                with archive.open(
                    f"{_NEXT if is_next else 'observations'}{names[key]}.npy", "w", force_zip64=True
                ) as out:
                    done, first = 0, True
                    for block in dataset.blocks():
                        part = (block.next_observations if is_next else block.observations)[key]
                        if first:
                            _write_header(out, (len(own) if is_next else count, *part.shape[1:]), part.dtype)
                            first = False
                        inside = own[(own >= done) & (own < done + len(block))] - done if is_next else slice(None)
                        out.write(np.ascontiguousarray(part[inside]).tobytes())
                        done += len(block)
                        advance(len(block))
        arrays = {name: np.concatenate(parts) for name, parts in small.items()}
        for name, array in {**arrays, _NEXT_ROWS: own, _ABOUT: np.array(json.dumps(about))}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as out:
                npy.write_array(out, array, allow_pickle=False)
    return target


def _write_header(file: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    header = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    npy.write_array_header_1_0(file, header)
