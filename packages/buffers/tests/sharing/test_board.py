"""Boards show the latest as a whole, to everybody."""

import multiprocessing
import time

import numpy as np
import pytest

from sb3_extra_buffers.errors import FileDamagedError, ParameterError
from sb3_extra_buffers.sharing import Board

NBYTES = 50_000


@pytest.fixture
def board(tmp_path):
    return Board.create(tmp_path / "board", NBYTES)


def test_the_latest_is_read_once(board):
    reader = Board.attach(board.path)
    assert reader.read() is None
    assert board.write(b"first") == 1
    assert board.write(b"second") == 2
    assert reader.read() == (2, b"second")
    assert reader.read(newer_than=2) is None
    assert board.write(b"") == 3
    assert reader.read(newer_than=2) == (3, b"")


def write_for_ever(board):
    value = 0
    while True:
        value = (value + 1) % 256
        board.write(np.full(NBYTES, value, np.uint8).tobytes())


def test_nobody_reads_a_half(board):
    writer = multiprocessing.Process(target=write_for_ever, args=(board,), daemon=True)
    writer.start()
    seen, hang_guard = 0, time.monotonic() + 1800
    versions = [0]
    while seen < 200 and time.monotonic() < hang_guard:
        found = board.read(versions[-1])
        if found is not None:
            versions.append(found[0])
            assert found[1] == bytes([found[0] % 256]) * NBYTES
            seen += 1
    writer.kill()
    writer.join()
    assert seen == 200
    assert versions == sorted(set(versions))


def test_damage_is_not_read(board):
    board.write(b"weights" * 100)
    content = bytearray(board.path.read_bytes())
    content[content.find(b"weights") + 70] ^= 1
    board.path.write_bytes(content)
    with pytest.raises(FileDamagedError, match="version 1"):
        Board.attach(board.path).read()


def test_a_board_of_another_size_is_refused(board):
    whole = board.path.read_bytes()
    for content in (whole[:100], whole[:-1], whole + b"\0", whole + bytes(2), whole[:-64]):
        board.path.unlink()
        board.path.write_bytes(content)
        with pytest.raises(FileDamagedError, match=f"{len(content)} bytes, which is no valid size"):
            Board.attach(board.path)


def test_bad_requests_say_what_is_allowed(tmp_path, board):
    for capacity in (0, True, 1.5):
        with pytest.raises(ParameterError, match="capacity"):
            Board.create(tmp_path / "new", capacity)
    with pytest.raises(ParameterError, match=f"{board.capacity} bytes fit"):
        board.write(bytes(board.capacity + 1))
