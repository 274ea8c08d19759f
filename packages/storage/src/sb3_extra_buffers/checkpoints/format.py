"""The file format: a safetensors header, arrays in little-endian order, and a CRC-32 per megabyte."""

from __future__ import annotations

import json
import math
import mmap
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sb3_extra_buffers.errors import ParameterError

FORMAT = "sb3-extra-buffers"
#: The version that is written, and the newest that can be read.
FORMAT_VERSION = 1
#: Size of the header's length, which precedes the header.
LENGTH_NBYTES = 8
#: Limit of the safetensors library.
MAX_HEADER_NBYTES = 100_000_000
#: The data start at a multiple of this.
ALIGNMENT = 64
#: Alignment of data that are mapped directly: the page size of this machine and of most others.
PAGE_ALIGNMENT = max(1 << 12, mmap.PAGESIZE)
#: One checksum covers this many bytes of an array.
CHECKSUM_BLOCK_NBYTES = 1 << 20
#: Name of the array of checksums: of the header, of the following checksums, and of each block of each array.
CHECKSUMS = "__crc32__"
OF_HEADER, OF_CHECKSUMS, OF_BLOCKS = range(3)
#: Every header of every version starts like this, which distinguishes another format from damage.
_BEGINNING = re.compile(rb'\{"__metadata__":\{"format":"sb3-extra-buffers","format_version":"([0-9]{1,9})",')
BEGINNING_NBYTES = 96
#: The dtypes by their safetensors names. All are little-endian in the file.
DTYPES: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype(np.bool_),
    **{f"U{8 * size}": np.dtype(f"<u{size}") for size in (1, 2, 4, 8)},
    **{f"I{8 * size}": np.dtype(f"<i{size}") for size in (1, 2, 4, 8)},
    **{f"F{8 * size}": np.dtype(f"<f{size}") for size in (2, 4, 8)},
}
DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_MAX_SIZE = (1 << 63) - 1
_MAX_AXES = 32  # of numpy 1


class HeaderError(Exception):
    """A header or manifest entry is invalid; the message says why."""


@dataclass(frozen=True)
class Entry:
    """One array in a file. ``begin`` is its offset from the start of the data."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    begin: int

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def end(self) -> int:
        return self.begin + self.nbytes


@dataclass(frozen=True)
class Layout:
    """The arrays of a file, in the order of their bytes, and its metadata as JSON. The checksums come first."""

    kind: str
    metadata: str
    checksums: Entry
    entries: tuple[Entry, ...]

    @property
    def nbytes(self) -> int:
        return (self.entries[-1] if self.entries else self.checksums).end


def storable(name: str, value: ArrayLike) -> NDArray[Any]:
    """Convert a value to a C-contiguous, little-endian array. The name is for errors."""
    array = np.asarray(value)
    dtype = array.dtype.newbyteorder("<")
    if dtype not in DTYPE_NAMES:
        allowed = f"it must be one of {', '.join(str(kind) for kind in DTYPE_NAMES)}"
        raise ParameterError("checkpoints.write", f"dtype of {name!r}", str(array.dtype), allowed)
    # ascontiguousarray() would add an axis to a scalar.
    return np.asarray(array, dtype, order="C")


def as_bytes(array: NDArray[Any]) -> memoryview:
    """The bytes of a contiguous array, in one dimension."""
    return memoryview(array.reshape(-1).view(np.uint8))


def split(array: NDArray[Any], nbytes: int) -> Iterator[memoryview]:
    """The bytes of a contiguous array in blocks; the last may be shorter."""
    content = as_bytes(array)
    return (content[begin : begin + nbytes] for begin in range(0, len(content), nbytes))


def checksum_count(nbytes: int) -> int:
    return -(-nbytes // CHECKSUM_BLOCK_NBYTES)


def arrange(kind: str, metadata: str, arrays: Iterable[tuple[str, np.dtype[Any], tuple[int, ...]]]) -> Layout:
    """Lay arrays out without gaps. The widest elements come first, so all arrays are aligned."""
    wanted = sorted(arrays, key=lambda array: -array[1].itemsize)
    blocks = sum(checksum_count(math.prod(shape) * dtype.itemsize) for _, dtype, shape in wanted)
    checksums = _checksums_entry(blocks)
    entries = [checksums]
    for name, dtype, shape in wanted:
        entries.append(Entry(name, dtype, shape, entries[-1].end))
    return Layout(kind, metadata, checksums, tuple(entries[1:]))


def _checksums_entry(blocks: int) -> Entry:
    per_line = ALIGNMENT // 4
    count = -(-(OF_BLOCKS + blocks) // per_line) * per_line
    return Entry(CHECKSUMS, np.dtype("<u4"), (count,), 0)


def compose(layout: Layout, alignment: int = ALIGNMENT) -> bytes:
    """Make the header of a file, with its length. The first array after the checksums is aligned."""
    header: dict[str, Any] = {
        "__metadata__": {
            "format": FORMAT,
            "format_version": str(FORMAT_VERSION),
            "kind": layout.kind,
            "metadata": layout.metadata,
        }
    }
    for entry in (layout.checksums, *layout.entries):
        offsets = [entry.begin, entry.end]
        header[entry.name] = {"dtype": DTYPE_NAMES[entry.dtype], "shape": entry.shape, "data_offsets": offsets}
    text = json.dumps(header, separators=(",", ":")).encode()
    padding = -(LENGTH_NBYTES + len(text) + layout.checksums.nbytes) % alignment
    return (len(text) + padding).to_bytes(LENGTH_NBYTES, "little") + text + b" " * padding


def version_of(beginning: bytes) -> int | None:
    """The format version at the start of a header; ``None`` for another format."""
    found = _BEGINNING.match(beginning)
    return None if found is None else int(found[1])


def parse(header: bytes, data_nbytes: int) -> Layout:
    """Read a header, without its length, and check all its numbers against the size of the data after it."""
    try:
        found = json.loads(header, object_pairs_hook=_without_duplicates)
        said = found.pop("__metadata__")
        kind, metadata = said["kind"], said["metadata"]
        entries = [_entry(name, value) for name, value in found.items()]
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise HeaderError(f"it cannot be read ({type(error).__name__}: {error})") from None
    if not isinstance(kind, str) or not isinstance(metadata, str):
        raise HeaderError("its metadata are not strings")
    end = 0
    for entry in entries:
        if entry.begin != end:
            raise HeaderError(f"{entry.name!r} begins at {entry.begin}, expected {end}")
        end = entry.end
    if end != data_nbytes:
        raise HeaderError(f"it describes {end} bytes of data, the file has {data_nbytes}")
    if not entries or entries[0] != _checksums_entry(sum(checksum_count(entry.nbytes) for entry in entries[1:])):
        raise HeaderError("the array of checksums is missing or has the wrong size")
    return Layout(kind, metadata, entries[0], tuple(entries[1:]))


def checked_number(number: Any) -> int:
    """Check a size, offset or count as parsed from JSON."""
    if type(number) is not int or not 0 <= number <= _MAX_SIZE:
        raise ValueError(f"{number!r} is not a valid number")
    return number


def checked_shape(name: str, dtype: np.dtype[Any], shape: Any) -> tuple[int, ...]:
    """Check a shape as parsed from JSON. The name of the array is for errors."""
    found = tuple(shape) if isinstance(shape, list) else (None,)
    if not all(type(axis) is int and 0 <= axis <= _MAX_SIZE for axis in found):
        raise HeaderError(f"{name!r} has an invalid shape")
    # Empty axes count as 1: numpy multiplies the others.
    if len(found) > _MAX_AXES or dtype.itemsize * math.prod(max(axis, 1) for axis in found) > _MAX_SIZE:
        raise HeaderError(f"{name!r} has a shape that is too large for an array")
    return found


def _entry(name: str, value: dict[str, Any]) -> Entry:
    dtype = DTYPES[value["dtype"]]
    shape, (begin, end) = checked_shape(name, dtype, value["shape"]), value["data_offsets"]
    entry = Entry(name, dtype, shape, checked_number(begin))
    if entry.end != checked_number(end):
        raise HeaderError(f"{name!r} of shape {shape} cannot end at {end}")
    return entry


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise HeaderError("a name appears twice")
    return found
