"""The file of a ring that has a name: made, or opened again."""

from __future__ import annotations

import os
from io import FileIO
from pathlib import Path

from sb3_extra_buffers.errors import FileContentError, FileDamagedError, ParameterError
from sb3_extra_buffers.heaps.journal import check_header
from sb3_extra_buffers.heaps.journal_format import RING_HEADER_NBYTES, RING_MAGIC, parse_ring_header

#: Payloads begin at a whole page.
FIRST_NBYTES = 4096


def claim_name(path: Path) -> None:
    """Make an empty file, or refuse if there is one already: whatever it is, it is not overwritten."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666))
    except FileExistsError as error:
        hint = (
            "Take another path, or remove it, and its journal beside it. A heap by itself goes on with it by "
            "reopen=True; a buffer is found again by loading its last checkpoint."
        )
        raise FileContentError(str(path), "a new file", "a file already", hint) from error


def does_not_fit(capacity: int, needed: int) -> ParameterError:
    """What to say if a file has no room for all that was saved.

    :param capacity: that was asked for
    :param needed: how many bytes were saved
    """
    allowed = f"{needed} bytes of payloads were saved, and all of them must fit into a file that has a path"
    return ParameterError("heap 'mmap'", "capacity", capacity, allowed, "Name more, or leave out the path.")


def is_unfinished(file: FileIO, capacity: int, has_rows: bool) -> bool:
    """Whether a file was being made when its process died: then nothing was ever committed to it.

    :param file: of the ring
    :param capacity: that was asked for
    :param has_rows: whether there is a journal with more than its header
    """
    size = os.fstat(file.fileno()).st_size
    file.seek(0)
    # The header is written last.
    is_blank = size == FIRST_NBYTES + capacity and not any(file.read(RING_HEADER_NBYTES))
    return not size or (is_blank and not has_rows)


def read_identity(path: Path, file: FileIO, capacity: int) -> bytes:
    """Check a file that was found, and return what its journal must have too.

    :param path: of the file
    :param file: the file
    :param capacity: that was asked for
    """
    file.seek(0)
    header = file.read(RING_HEADER_NBYTES)
    check_header(path, header, RING_MAGIC, RING_HEADER_NBYTES)
    found, identity = parse_ring_header(header)
    if found != capacity:
        hint = "Reopen it with the capacity that it was made with."
        raise FileContentError(str(path), f"a capacity of {capacity} bytes", f"one of {found}", hint)
    size, expected = os.fstat(file.fileno()).st_size, FIRST_NBYTES + capacity
    if size != expected:
        raise FileDamagedError(str(path), (f"it has {size} bytes instead of {expected}",))
    return identity
