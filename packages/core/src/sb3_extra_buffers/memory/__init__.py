"""Bytes in memory: views without copies, allocation, mapped files. Codecs and heaps both build on it."""

from sb3_extra_buffers.memory.allocation import address_of, mapping_of, pages, untouched, write_all
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
    "NOTHING",
    "Attribute",
    "Buffer",
    "ByteSource",
    "Bytes",
    "Columns",
    "FlatBytes",
    "Indices",
    "address_of",
    "check_room",
    "check_rows",
    "mapping_of",
    "pages",
    "publish",
    "untouched",
    "view_bytes",
    "write_all",
]
