"""The bytes of a journal: what a heap in a file has committed. docs/heaps.md describes them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

#: Of the files that this version writes, and the newest that it reads.
HEAP_FORMAT_VERSION = 1
RING_MAGIC, JOURNAL_MAGIC = b"sb3xRNG\n", b"sb3xJNL\n"
#: A row of payloads; a row about to be written over others; everything dropped.
ROW, BEGIN, CLEAR = 1, 2, 3

_PREFIX = struct.Struct("<8sII")  # magic, checksum of all that follows, format version
_RING = struct.Struct("<Q16s")  # capacity, identity
_BASE = struct.Struct("<QQ16sQqQQQ")  # cells, capacity, identity, first number, end of the ring, evicted (3)
_HEAD = struct.Struct("<IIQqII")  # checksum of all that follows, kind, number, position, entries, 0
_ENTRY = struct.Struct("<qqII")  # cell, start, length, checksum of the payload
RING_HEADER_NBYTES = _PREFIX.size + _RING.size
BASE_NBYTES = _PREFIX.size + _BASE.size
_CRC_NBYTES = 4


@dataclass(frozen=True)
class Entry:
    """One payload.

    :param cell: to which it belongs
    :param start: its position; it only grows, the place in the ring is the position modulo the capacity
    :param length: its size
    :param checksum: CRC-32 of its bytes
    """

    cell: int
    start: int = 0
    length: int = 0
    checksum: int = 0


@dataclass(frozen=True)
class Record:
    """One line of the journal.

    :param kind: ``ROW``, ``BEGIN`` or ``CLEAR``
    :param position: of a row, where the ring ends with it; of a beginning, before which payloads may be overwritten
    :param entries: the payloads of a row; of a beginning, only their cells
    """

    kind: int
    position: int
    entries: Sequence[Entry] = ()


@dataclass(frozen=True)
class Base:
    """How a journal begins.

    :param cells: how many cells the heap has
    :param capacity: size of the ring
    :param identity: 16 bytes that the file of the ring has too
    :param first: the number of the first record
    :param tail: where the ring ended
    :param evicted: rows, cells and bytes evicted until then
    """

    cells: int
    capacity: int
    identity: bytes
    first: int = 0
    tail: int = 0
    evicted: tuple[int, int, int] = (0, 0, 0)


def ring_header(capacity: int, identity: bytes) -> bytes:
    """How the file of the ring begins."""
    return _prefixed(RING_MAGIC, _RING.pack(capacity, identity))


def parse_ring_header(header: bytes) -> tuple[int, bytes]:
    """Capacity and identity."""
    capacity, identity = _RING.unpack_from(header, _PREFIX.size)
    return capacity, identity


def base_header(base: Base) -> bytes:
    """How a journal begins."""
    fields = (base.cells, base.capacity, base.identity, base.first, base.tail, *base.evicted)
    return _prefixed(JOURNAL_MAGIC, _BASE.pack(*fields))


def parse_base(header: bytes) -> Base:
    """What a journal begins with."""
    cells, capacity, identity, first, tail, *evicted = _BASE.unpack_from(header, _PREFIX.size)
    return Base(cells, capacity, identity, first, tail, (evicted[0], evicted[1], evicted[2]))


def prefix(header: bytes) -> tuple[bytes, int, bool]:
    """Magic, format version, and whether the checksum is right. The header must be complete."""
    magic, checksum, version = _PREFIX.unpack_from(header)
    return magic, version, checksum == crc32(header[_PREFIX.size - 4 :])


def pack(number: int, record: Record) -> bytes:
    """A record as bytes.

    :param number: one more than that of the record before it
    :param record: what it says
    """
    entries = b"".join(_ENTRY.pack(one.cell, one.start, one.length, one.checksum) for one in record.entries)
    head = _HEAD.pack(0, record.kind, number, record.position, len(record.entries), 0)[_CRC_NBYTES:]
    return crc32(entries, crc32(head)).to_bytes(_CRC_NBYTES, "little") + head + entries


def unpack(content: memoryview, place: int, number: int) -> tuple[Record, int] | None:
    """The record at a place and where the next one begins; ``None`` if no whole record of this number is there."""
    if place + _HEAD.size > len(content):
        return None
    checksum, kind, found, position, count, zero = _HEAD.unpack_from(content, place)
    end = place + _HEAD.size + count * _ENTRY.size
    if zero or found != number or kind not in (ROW, BEGIN, CLEAR) or end > len(content):
        return None
    if crc32(content[place + _CRC_NBYTES : end]) != checksum:
        return None
    entries = [Entry(*fields) for fields in _ENTRY.iter_unpack(content[place + _HEAD.size : end])]
    return Record(kind, position, entries), end


def _prefixed(magic: bytes, body: bytes) -> bytes:
    version = HEAP_FORMAT_VERSION.to_bytes(4, "little")
    return magic + crc32(version + body).to_bytes(4, "little") + version + body
