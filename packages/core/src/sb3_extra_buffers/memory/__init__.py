"""Bytes in memory: views without copies, allocation, mapped files. Codecs and heaps both build on it."""

from sb3_extra_buffers.memory.allocation import BLOCKS, BatchMemory, extended, pages, untouched, used_part
from sb3_extra_buffers.memory.files import address_of, mapping_of, write_all
from sb3_extra_buffers.memory.publish import NOTHING, Attribute, Columns, publish
from sb3_extra_buffers.memory.views import (
    Buffer,
    Bytes,
    ByteSource,
    FlatBytes,
    Indices,
    check_room,
    check_rows,
    view_bytes,
)

__all__ = [
    "BLOCKS",
    "NOTHING",
    "Attribute",
    "BatchMemory",
    "Buffer",
    "ByteSource",
    "Bytes",
    "Columns",
    "FlatBytes",
    "Indices",
    "address_of",
    "check_room",
    "check_rows",
    "extended",
    "mapping_of",
    "pages",
    "publish",
    "untouched",
    "used_part",
    "view_bytes",
    "write_all",
]
