"""Bytes in memory, seen without copies. Codecs and heaps both build on it and need not know each other."""

from sb3_extra_buffers.memory.checks import check_room, check_rows, view_bytes
from sb3_extra_buffers.memory.flat import FlatBytes
from sb3_extra_buffers.memory.recycling import BLOCKS, BatchMemory
from sb3_extra_buffers.memory.types import Buffer, Bytes, ByteSource, Indices
from sb3_extra_buffers.memory.untouched import extended, pages, untouched, used_part

__all__ = [
    "BLOCKS",
    "BatchMemory",
    "Buffer",
    "ByteSource",
    "Bytes",
    "FlatBytes",
    "Indices",
    "check_room",
    "check_rows",
    "extended",
    "pages",
    "untouched",
    "used_part",
    "view_bytes",
]
