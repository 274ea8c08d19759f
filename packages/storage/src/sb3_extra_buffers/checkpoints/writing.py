"""``write``: arrays become a file, all of them at once."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sb3_extra_buffers.checkpoints.checksums import blocks
from sb3_extra_buffers.checkpoints.dtypes import storable
from sb3_extra_buffers.checkpoints.layout import (
    ALIGNMENT,
    MAX_HEADER_NBYTES,
    OF_BLOCKS,
    OF_CHECKSUMS,
    OF_HEADER,
    arrange,
    compose,
)
from sb3_extra_buffers.checkpoints.passing import Passage
from sb3_extra_buffers.checkpoints.replacing import replacing
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.memory import write_all

_OWNER = "files.write"


def write(
    path: str | os.PathLike[str],
    arrays: Mapping[str, ArrayLike],
    metadata: Mapping[str, Any],
    kind: str,
    alignment: int = ALIGNMENT,
) -> int:
    """
    Write named arrays to one file, which replaces what was there when all of it is on the disk.

    :param path: where to; the folder must exist
    :param arrays: numbers of any shape, by name
    :param metadata: anything that JSON can say about them
    :param kind: what the file is, such as ``"recording"``; whoever opens it can ask for it
    :param alignment: where the first array begins in the file: a multiple of this, which is one of 64
    :return: the size of the file
    """
    ready = {_named(name): storable(name, value) for name, value in arrays.items()}
    layout = arrange(kind, _json(metadata), ((name, array.dtype, array.shape) for name, array in ready.items()))
    header = compose(layout, alignment)
    if len(header) > MAX_HEADER_NBYTES:
        allowed = f"a header of {len(header):,} bytes came of them, at most {MAX_HEADER_NBYTES:,} are allowed"
        raise ParameterError(_OWNER, "arrays and metadata", "too much", allowed, "Put large things into arrays.")
    sums = np.zeros(layout.checksums.shape, layout.checksums.dtype)
    sums[OF_HEADER] = crc32(header)
    number = OF_BLOCKS
    with replacing(path) as file:
        write_all(file, header)
        file.seek(layout.checksums.nbytes, os.SEEK_CUR)
        for entry in layout.entries:
            passage, done = Passage(ready[entry.name]), 0
            for block in blocks(as_bytes(ready[entry.name])):
                passage.ahead(done, len(block))
                sums[number] = crc32(block)
                number += 1
                write_all(file, block)
                passage.behind(done, len(block))
                done += len(block)
        sums[OF_CHECKSUMS] = crc32(as_bytes(sums[OF_BLOCKS:]))
        file.seek(len(header))
        write_all(file, as_bytes(sums))
    return len(header) + layout.nbytes


def as_bytes(array: NDArray[Any]) -> memoryview:
    """A contiguous array as bytes in one dimension."""
    return memoryview(array.reshape(-1).view(np.uint8))


def _named(name: str) -> str:
    if not isinstance(name, str) or not name or name.startswith("__"):
        raise ParameterError(_OWNER, "the name of an array", name, "it must be text and not begin with '__'")
    return name


def _json(metadata: Mapping[str, Any]) -> str:
    try:
        return json.dumps(metadata, allow_nan=False)
    except (TypeError, ValueError) as error:
        allowed = f"it must be what JSON can say ({error})"
        raise ParameterError(_OWNER, "metadata", dict(metadata), allowed) from error
