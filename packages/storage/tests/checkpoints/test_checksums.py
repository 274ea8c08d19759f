"""Bytes of mapped files are compared with their checksums before they are first read, once, and no others are read."""

import gc
import os

import numpy as np
import pytest

from sb3_extra_buffers import checkpoints
from sb3_extra_buffers.checkpoints import checksums
from sb3_extra_buffers.checkpoints.checksums import UnreadBytes
from sb3_extra_buffers.errors import FileDamagedError
from sb3_extra_buffers.heaps.state import Log, Piece, State

MB = 1 << 20
CONTENT = np.random.default_rng(0).integers(0, 256, 10 * MB + 5, np.uint8)


@pytest.fixture
def compared(monkeypatch):
    """The first byte in the content of each block that is compared, in order."""
    found, real = [], checksums.crc32

    def crc32(block):
        found.append(int(np.flatnonzero(starts == int.from_bytes(block[:5], "little"))[0]))
        return real(block)

    blocks = CONTENT[: 10 * MB].reshape(10, MB)[:, :5].astype(np.int64)
    starts = np.append((blocks << np.arange(5) * 8).sum(axis=1), int.from_bytes(CONTENT[-5:].tobytes(), "little"))
    monkeypatch.setattr(checksums, "crc32", crc32)
    return found


@pytest.fixture
def piece(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda number: None)

    def piece(damaged=()):
        log = Log("7", 0, len(CONTENT), lambda low, high: [CONTENT[low:high]])
        checkpoints.save_state(tmp_path / "state", State({}, {}, [log]), {})
        (segment,) = (tmp_path / "state").glob("segment-*")
        content = bytearray(segment.read_bytes())
        begin = content.index(CONTENT[:64].tobytes())
        for place in damaged:
            content[begin + place] ^= 1
        segment.write_bytes(content)
        (found,) = checkpoints.load_state(tmp_path / "state")[0].pieces["7"]
        return found

    return piece


def check(piece, *ranges):
    begins, lengths = np.array(ranges, np.int64).reshape(-1, 2).T
    return piece.unread.check(np.uint64(piece.raw.ctypes.data) + begins.astype(np.uint64), lengths)


def test_only_blocks_that_are_read_and_one_more_are_compared_and_none_twice(piece, compared):
    found = piece()
    assert compared == []  # loading reads none
    assert not check(found, (5 * MB + 7, 100), (7 * MB - 1, 2), (5 * MB, 1))
    assert compared == [5, 6, 7, 0]
    assert not check(found, (5 * MB, MB))
    assert compared == [5, 6, 7, 0, 1]
    assert not check(found)
    assert compared == [5, 6, 7, 0, 1, 2]
    assert check(found, (8 * MB, 2 * MB + 5), (3 * MB, MB + 1))
    assert compared == [5, 6, 7, 0, 1, 2, 3, 4, 8, 9, 10]
    assert check(found, (0, len(CONTENT)))
    assert len(compared) == 11


def test_whoever_reads_a_piece_as_a_whole_reads_what_was_compared(piece, compared):
    found = piece()
    np.testing.assert_array_equal(found.content, CONTENT)
    assert sorted(compared) == list(range(11))
    with pytest.raises(FileDamagedError, match=r"'7@0', bytes 6291456 to 7340031"):
        piece([6 * MB + 9]).content  # noqa: B018


def test_damage_is_an_error_each_time_it_is_read(piece):
    found = piece([9 * MB])
    assert not check(found, (0, 5))
    for _ in range(2):
        with pytest.raises(FileDamagedError, match=r"segment-000001.*'7@0', bytes 9437184 to 10485759"):
            check(found, (10 * MB - 1, 1))
    assert not check(found, (MB, 5))


def test_other_memory_is_not_compared(piece, compared):
    found, other = piece(), np.zeros(100, np.uint8)
    found.unread.check(np.array([1, other.ctypes.data], np.uint64), np.array([10, 100]))
    assert len(compared) <= 2  # the block that comes next, and perhaps the one that lies before that memory
    nothing = UnreadBytes([other, np.empty(0, np.uint8)])
    assert nothing.check(np.array([other.ctypes.data], np.uint64), np.array([100]))
    assert Piece(3, other).content is other


def test_a_file_that_nobody_has_mapped_is_not_kept_for_its_checksums(piece):
    found = piece([0])
    unread, address = found.unread, np.array([found.raw.ctypes.data], np.uint64)
    before = len(checksums.checksums)
    del found
    gc.collect()
    assert len(checksums.checksums) == before - 1
    assert not unread.check(address, np.array([1]))  # whatever lies there now, it is not that file
