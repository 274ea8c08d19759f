"""Files, as they come and with checksums that fit whatever they say; rings and boards."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers import checkpoints
from sb3_extra_buffers.checkpoints.format import (
    CHECKSUM_BLOCK_NBYTES,
    LENGTH_NBYTES,
    OF_BLOCKS,
    HeaderError,
    parse,
    split,
)
from sb3_extra_buffers.sharing import Board, Ring, files
from scripts.fuzzing.target import FindingError, Target, only_errors_of_ours

_RECORD = np.dtype([("number", np.int64), ("noise", np.uint8, (100,))], align=True)


class _Folder:
    """A place for one file at a time, in memory where there is one."""

    def __init__(self) -> None:
        memory = Path("/dev/shm")
        self._folder = tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None)

    @property
    def path(self) -> Path:
        return Path(self._folder.name, "file")

    def put(self, content: bytes) -> Path:
        """A new file: an older one may still be mapped."""
        self.path.unlink(missing_ok=True)
        self.path.write_bytes(content)
        return self.path


def resealed(content: bytes) -> bytes:
    """The same with checksums that fit, as far as it has a header: who makes a file can make these too."""
    begin = LENGTH_NBYTES + int.from_bytes(content[:LENGTH_NBYTES], "little")
    if begin + 8 > len(content):
        return content
    sealed = bytearray(content)
    sealed[begin : begin + 4] = crc32(content[:begin]).to_bytes(4, "little")
    try:
        layout = parse(content[LENGTH_NBYTES:begin], len(content) - begin)
    except HeaderError:
        return bytes(sealed)
    data = np.frombuffer(content, np.uint8)[begin:]
    arrays = (data[entry.begin : entry.end] for entry in layout.entries)
    sums = [crc32(block) for array in arrays for block in split(array, CHECKSUM_BLOCK_NBYTES)]
    table = np.zeros(layout.checksums.shape, "<u4")
    table[OF_BLOCKS : OF_BLOCKS + len(sums)] = sums
    table[0] = crc32(content[:begin])
    table[1] = crc32(table[OF_BLOCKS:].tobytes())
    sealed[begin : begin + table.nbytes] = table.tobytes()
    return bytes(sealed)


def file_targets() -> Iterator[Target]:
    """Files of arrays, rings and boards."""
    folder = _Folder()
    arrays: dict[str, NDArray[Any]] = {
        "x": np.arange(7),
        "y": np.arange(11, dtype=np.uint8),
        "z": np.ones((2, 3), np.float32),
    }
    checkpoints.write(folder.path, arrays, {"note": "small"}, "test")
    seed = folder.path.read_bytes()
    for name, prepare in (("as it is", bytes), ("resealed", resealed)):
        yield Target(f"file {name}", [seed], _opening(folder, seed, prepare))
    yield _ring_target()
    yield _board_target()


def _opening(folder: _Folder, seed: bytes, prepare: Callable[[bytes], bytes]) -> Callable[[bytes], None]:
    def attack(data: bytes) -> None:
        content = prepare(data)
        with only_errors_of_ours(), checkpoints.open_arrays(folder.put(content), verify=True) as found:
            nbytes = sum(array.nbytes for array in found.values())
            json.dumps(found.metadata)
            if nbytes > len(content):
                raise FindingError(f"{nbytes} bytes came out of a file of {len(content)}")
            if prepare is bytes and content != seed:
                raise FindingError("it was altered, and all checksums fit")

    return attack


def _ring_target() -> Target:
    folder = _Folder()
    made = Ring.create(folder.path, _RECORD, 3)
    for number in range(2):
        record = np.zeros((), _RECORD)
        record["number"] = number
        made.put(record)
    files._RECORD_ATTEMPTS = 2  # what is damaged stays so, however often one looks

    def attack(data: bytes) -> None:
        with only_errors_of_ours():
            found = Ring.attach(folder.put(data))
            if found.take().nbytes > len(data):
                raise FindingError("more came out than the file holds")

    return Target("ring", [folder.path.read_bytes()], attack)


def _board_target() -> Target:
    folder = _Folder()
    made = Board.create(folder.path, 200)
    made.write(b"weights" * 20)
    made.write(b"others" * 20)
    files._PAGE_ATTEMPTS = 2

    def attack(data: bytes) -> None:
        with only_errors_of_ours():
            found = Board.attach(folder.put(data)).read()
            if found is not None and len(found[1]) > len(data):
                raise FindingError("more came out than the file holds")

    return Target("board", [folder.path.read_bytes()], attack)
