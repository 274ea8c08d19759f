"""Files and mapped memory: what heaps and checkpoints both need."""

from __future__ import annotations

import mmap
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray


def write_all(file: BinaryIO, content: bytes | memoryview) -> None:
    """Write all bytes: the system may accept fewer at a time."""
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]


def mapping_of(content: NDArray[Any] | memoryview) -> mmap.mmap | None:
    """The mapping that an array or view lies in; ``None`` if it lies in other memory."""
    owner: Any = content
    while owner is not None and not isinstance(owner, mmap.mmap):
        # numpy keeps a reference to the object that an array was made from, and a view has one to its object.
        owner = owner.obj if isinstance(owner, memoryview) else getattr(owner, "base", None)
    return owner


def address_of(mapping: mmap.mmap) -> int:
    """The address of the first byte of a mapping."""
    return np.frombuffer(mapping, np.uint8).ctypes.data
