"""The header of a file: what it holds and where, as safetensors says it."""

from __future__ import annotations

import json
import math
import mmap
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sb3_extra_buffers.checkpoints.checksums import block_count
from sb3_extra_buffers.checkpoints.dtypes import BY_NAME, name_of

FORMAT = "sb3-extra-buffers"
#: Of the files that this version writes, and the newest that it reads.
FORMAT_VERSION = 1
#: Before the header stands its length.
LENGTH_NBYTES = 8
#: What the official library accepts.
MAX_HEADER_NBYTES = 100_000_000
#: Data begin at a multiple of this.
ALIGNMENT = 64
#: What shall be mapped as it lies in the file begins at a multiple of this: a page here, and on most machines.
PAGE_ALIGNMENT = max(1 << 12, mmap.PAGESIZE)
#: The array of checksums: of the header, of the other checksums, and of each block of each array.
CHECKSUMS = "__crc32__"
OF_HEADER, OF_CHECKSUMS, OF_BLOCKS = range(3)
_MAX_SIZE = (1 << 63) - 1
_MAX_AXES = 32  # of numpy 1
#: How every header begins, whatever the version, so that another format is told from damage.
_BEGINNING = re.compile(rb'\{"__metadata__":\{"format":"sb3-extra-buffers","format_version":"([0-9]{1,9})",')
BEGINNING_NBYTES = 96


class HeaderError(Exception):
    """What is wrong with a header, in words."""


@dataclass(frozen=True)
class Entry:
    """One array.

    :param name: what it is called
    :param dtype: of its elements, little-endian
    :param shape: of the array
    :param begin: where it begins, counted from where data begin
    """

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
    """All arrays of a file, and what is said about them.

    :param kind: what the file is
    :param metadata: as JSON
    :param checksums: where the checksums are
    :param entries: all other arrays, in the order of their bytes
    """

    kind: str
    metadata: str
    checksums: Entry
    entries: tuple[Entry, ...]

    @property
    def nbytes(self) -> int:
        """Size of the data."""
        return (self.entries[-1] if self.entries else self.checksums).end


def arrange(kind: str, metadata: str, arrays: Iterable[tuple[str, np.dtype[Any], tuple[int, ...]]]) -> Layout:
    """Give every array a place: there may be no gaps, so the widest elements come first and all are aligned."""
    wanted = sorted(arrays, key=lambda array: -array[1].itemsize)
    blocks = sum(block_count(math.prod(shape) * dtype.itemsize) for _, dtype, shape in wanted)
    checksums = _checksums_of(blocks)
    entries, end = [], checksums.end
    for name, dtype, shape in wanted:
        entries.append(Entry(name, dtype, shape, end))
        end = entries[-1].end
    return Layout(kind, metadata, checksums, tuple(entries))


def _checksums_of(blocks: int) -> Entry:
    per_line = ALIGNMENT // 4
    count = -(-(OF_BLOCKS + blocks) // per_line) * per_line
    return Entry(CHECKSUMS, np.dtype("<u4"), (count,), 0)


def compose(layout: Layout, alignment: int = ALIGNMENT) -> bytes:
    """A header with its length.

    :param layout: what it tells of
    :param alignment: the first array behind the checksums begins at a multiple of this
    """
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
        header[entry.name] = {"dtype": name_of(entry.dtype), "shape": entry.shape, "data_offsets": offsets}
    text = json.dumps(header, separators=(",", ":")).encode()
    padding = -(LENGTH_NBYTES + len(text) + layout.checksums.nbytes) % alignment
    return (len(text) + padding).to_bytes(LENGTH_NBYTES, "little") + text + b" " * padding


def version_of(beginning: bytes) -> int | None:
    """The format version that a header begins with; ``None`` if it is not one of ours."""
    found = _BEGINNING.match(beginning)
    return None if found is None else int(found[1])


def parse(header: bytes, data_nbytes: int) -> Layout:
    """Read a header, and check every number in it against the size of the file.

    :param header: without its length
    :param data_nbytes: how many bytes follow it
    """
    try:
        found = json.loads(header, object_pairs_hook=_without_repetition)
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
            raise HeaderError(f"{entry.name!r} begins at {entry.begin}, where {end} was expected")
        end = entry.end
    if end != data_nbytes:
        raise HeaderError(f"it tells of {end} bytes of data, there are {data_nbytes}")
    if not entries or entries[0] != _checksums_of(sum(block_count(entry.nbytes) for entry in entries[1:])):
        raise HeaderError("the checksums are not where they belong")
    return Layout(kind, metadata, entries[0], tuple(entries[1:]))


def checked_shape(name: str, dtype: np.dtype[Any], said: Any) -> tuple[int, ...]:
    """A shape that an array can have.

    :param name: of the array, for the error
    :param dtype: of its elements
    :param said: what a file says its shape is
    """
    shape = tuple(said) if isinstance(said, list) else (None,)
    if not all(type(axis) is int and 0 <= axis <= _MAX_SIZE for axis in shape):
        raise HeaderError(f"{name!r} has sizes that are none")
    # Also of an array without elements: numpy multiplies the axes that it has.
    if len(shape) > _MAX_AXES or dtype.itemsize * math.prod(max(axis, 1) for axis in shape) > _MAX_SIZE:
        raise HeaderError(f"{name!r} has a shape that no array can have")
    return shape


def _entry(name: str, value: dict[str, Any]) -> Entry:
    dtype = BY_NAME[value["dtype"]]
    shape, (begin, end) = checked_shape(name, dtype, value["shape"]), value["data_offsets"]
    if not all(type(number) is int and 0 <= number <= _MAX_SIZE for number in (begin, end)):
        raise HeaderError(f"{name!r} has sizes that are none")
    entry = Entry(name, dtype, shape, begin)
    if entry.end != end:
        raise HeaderError(f"{name!r} of shape {shape} cannot end at {end}")
    return entry


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise HeaderError("a name is there twice")
    return found
