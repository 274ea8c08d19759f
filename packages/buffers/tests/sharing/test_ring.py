"""Rings hand over every record once, whole and in order, whoever is killed."""

import contextlib
import json
import multiprocessing
import os
import pickle
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sb3_extra_buffers.errors import (
    FileDamagedError,
    FileVersionError,
    FileWriteError,
    ForeignFileError,
    ParameterError,
)
from sb3_extra_buffers.sharing import Ring

RECORD = np.dtype([("number", np.int64), ("noise", np.uint8, (3000,))], align=True)


def record(number):
    found = np.zeros((), RECORD)
    found["number"] = number
    found["noise"] = np.random.default_rng(number).integers(0, 256, 3000, np.uint8)
    return found


def check(found, first):
    """Records ``first``, ``first + 1``, ... with every byte."""
    assert found["number"].tolist() == list(range(first, first + len(found)))
    assert all(one == record(first + index) for index, one in enumerate(found))


@pytest.fixture
def ring(tmp_path):
    return Ring.create(tmp_path / "ring", RECORD, 5)


def test_records_come_out_as_they_went_in(ring):
    reader = Ring.attach(ring.path)
    for number in range(3):
        assert ring.put(record(number))
    assert len(reader) == 3
    check(reader.take(2), 0)
    check(reader.take(), 2)
    assert len(reader.take()) == 0


def test_what_was_taken_is_the_callers(ring):
    ring.put(record(0))
    found = ring.take()
    for number in range(1, 6):
        ring.put(record(number))
    check(found, 0)
    found["noise"] = 0  # and may be written to


def test_a_full_ring_takes_nothing_until_there_is_room(ring):
    for number in range(5):
        assert ring.put(record(number))
    assert not ring.put(record(5), timeout=0)
    check(ring.take(1), 0)
    assert ring.put(record(5), timeout=0)
    check(ring.take(), 1)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), max_size=30), st.integers(1, 6))
def test_any_order_of_putting_and_taking_keeps_the_order(tmp_path_factory, steps, slots):
    ring = Ring.create(tmp_path_factory.mktemp("ring") / "ring", RECORD, slots)
    put = taken = 0
    for puts, takes in steps:
        for _ in range(puts):
            put += ring.put(record(put), timeout=0)
        found = ring.take(takes)
        check(found, taken)
        taken += len(found)
        assert len(ring) == put - taken <= slots


def test_who_waits_for_a_record_learns_of_the_end(ring):
    ring.put(record(0))
    ring.end()
    assert ring.is_ended
    check(ring.take(timeout=None), 0)
    assert len(ring.take(timeout=None)) == 0


def test_a_ring_travels_to_another_process_by_its_file(ring):
    ring.put(record(0))
    check(pickle.loads(pickle.dumps(ring)).take(), 0)
    assert len(ring) == 0  # it is the same one


def put_for_ever(ring):
    number = ring.written
    while True:
        number += ring.put(record(number))


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_another_process_puts_while_this_one_takes(ring, method):
    writer = multiprocessing.get_context(method).Process(target=put_for_ever, args=(ring,), daemon=True)
    writer.start()
    taken, hang_guard = 0, time.monotonic() + 1800
    while taken < 200:
        found = ring.take(timeout=1)
        check(found, taken)
        taken += len(found)
        assert time.monotonic() < hang_guard
    writer.kill()
    writer.join()


def test_a_writer_that_is_killed_loses_nothing_that_was_put_and_is_replaced(ring):
    taken, chance = 0, random.Random(0)
    for _ in range(25):
        writer = multiprocessing.Process(target=put_for_ever, args=(ring,), daemon=True)
        writer.start()
        wanted = taken + chance.randrange(1, 12)
        while taken < wanted:
            found = ring.take(chance.randrange(1, 4), timeout=1)
            check(found, taken)
            taken += len(found)
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
        assert len(ring) <= ring.slots
    check(ring.take(), taken)


def test_a_damaged_record_is_named_and_never_handed_out(ring):
    ring.put(record(0))
    content = bytearray(ring.path.read_bytes())
    place = content.find(record(0)["noise"].tobytes())
    content[place + 77] ^= 1
    ring.path.write_bytes(content)
    with pytest.raises(FileDamagedError, match="record 0, in slot 0"):
        Ring.attach(ring.path).take()


def test_records_around_a_damaged_one_are_handed_out(ring):
    for number in range(5):
        ring.put(record(number))
    ring._bytes[2, 100] ^= 1
    check(ring.take(), 0)
    assert ring.taken == 2
    for _ in range(2):
        with pytest.raises(FileDamagedError, match=r"record 2, in slot 2\. skip\(\) leaves it out"):
            ring.take()
    ring.skip()
    check(ring.take(), 3)


def test_what_is_looked_at_stays_until_it_is_skipped(ring):
    for number in range(4):
        ring.put(record(number))
    check(ring.look(3), 0)
    check(ring.look(), 0)
    ring.skip(3)
    check(ring.take(), 3)
    for count in (1, -1):
        with pytest.raises(ParameterError, match="0 records wait"):
            ring.skip(count)


def test_files_that_are_no_rings_are_refused(ring, tmp_path):
    whole = ring.path.read_bytes()
    other = tmp_path / "other"
    for content, error in [
        (b"", ForeignFileError),
        (b"something else", ForeignFileError),
        (whole[:8] + b"\x09" + whole[9:], FileVersionError),
        (whole[:100], FileDamagedError),
        (whole[:-1], FileDamagedError),
        (whole[:64] + b"\xff" * 8 + whole[72:], FileDamagedError),
        (whole[:72] + b"\xff" * 8 + whole[80:], FileDamagedError),
        (whole.replace(b'"noise"', b'"noise\x00'), FileDamagedError),
        (whole.replace(b'"|u1"', b'"|O1"'), FileDamagedError),
    ]:
        other.write_bytes(content)
        with pytest.raises(error):
            Ring.attach(other)


def test_a_ring_that_is_being_made_is_no_ring_yet_and_never_a_damaged_one(tmp_path, monkeypatch):
    path, found = tmp_path / "new", []
    frombuffer = np.frombuffer

    def looked_at(*given):  # whatever is written into the new file passes here
        if path.exists():
            with pytest.raises(ForeignFileError, match="being made at this moment, try again"):
                Ring.attach(path)
            found.append(len(given))
        return frombuffer(*given)

    monkeypatch.setattr(np, "frombuffer", looked_at)
    Ring.create(path, RECORD, 5)
    monkeypatch.undo()
    assert len(found) >= 3
    assert Ring.attach(path).slots == 5


@settings(max_examples=200, deadline=None)
@given(place=st.integers(0, 1000), value=st.integers(0, 255))
def test_no_byte_of_the_head_makes_a_reader_hang_or_crash(tmp_path_factory, place, value):
    ring = Ring.create(tmp_path_factory.mktemp("ring") / "ring", np.dtype([("number", np.int32)]), 2)
    ring.put(np.zeros((), ring.record))
    content = bytearray(ring.path.read_bytes())
    content[place % len(content)] = value
    ring.path.write_bytes(content)
    with contextlib.suppress(FileDamagedError, ForeignFileError, FileVersionError):
        assert Ring.attach(ring.path).take(3).nbytes <= 3 * 8


def test_bad_requests_say_what_is_allowed(tmp_path, ring):
    for slots in (0, -1, True, 2.5):
        with pytest.raises(ParameterError, match="slots"):
            Ring.create(tmp_path / "new", RECORD, slots)
    for dtype in (np.dtype(np.uint8), np.dtype([("anything", object)])):
        with pytest.raises(ParameterError, match="structured dtype"):
            Ring.create(tmp_path / "new", dtype, 1)
    with pytest.raises(FileWriteError, match="not taken"):
        Ring.create(ring.path, RECORD, 1)
    with pytest.raises(FileWriteError, match="fewer slots"):
        Ring.create(tmp_path / "new", RECORD, 1 << 40)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("fields", "itemsize"),
    [
        ([["a", "f4, (", [1], 0]], 4),  # SyntaxError
        ([["a", "<f4", [1 << 70], 0]], 4),  # OverflowError
        ([["a", "<f4", [], 1 << 70]], 4),
        ([["a", "<f4", [], 0]], 1 << 70),
        ([["a", "<f4", [], 0]], (1 << 31) - 1),  # a record that is possible, in a slot that is not
        ([["a", "<f4", [], 0]], -1),
        ([["a", "nothing", [], 0]], 4),
        ([["a", "<f4", None, 0]], 4),
        ([["a", {"": 0}, [], 0]], 4),
        ([["a", "<f4", []]], 4),
        ([], 4),
        ("fields", 4),
    ],
)
def test_a_description_that_is_none_is_damage(tmp_path, fields, itemsize):
    ring = Ring.create(tmp_path / "ring", RECORD, 2)
    text = json.dumps({"fields": fields, "itemsize": itemsize}).encode()
    content = bytearray(ring.path.read_bytes())
    content[72:80] = len(text).to_bytes(8, "little")
    content[320 : 320 + len(text)] = text
    other = tmp_path / "other"
    other.write_bytes(content)
    with pytest.raises(FileDamagedError, match="description of its records"):
        Ring.attach(other)


#: In a process of its own, which is ended if it waits.
_ATTACH = """
import sys
from sb3_extra_buffers.errors import ForeignFileError
from sb3_extra_buffers.sharing import Board, Ring

for kind in (Board, Ring):
    try:
        kind.attach(sys.argv[1])
    except ForeignFileError as error:
        print(error)
"""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_a_pipe_in_place_of_a_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    command = [sys.executable, "-W", "ignore", "-c", _ATTACH, str(tmp_path / "pipe")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    assert done.stdout.count("it is a pipe or a device") == 2, done.stderr
